// Fencedgrpc is the example fencedhttp with gRPC: a service that keeps a book, and
// refuses the late entry of an old leader. In three terminals, with
// ELECTOR_URL=file:///tmp/bookkeepers:
//
//	go run ./examples/fencedgrpc serve /tmp 127.0.0.1:8080
//	go run ./examples/fencedgrpc lead -late 127.0.0.1:8080
//	go run ./examples/fencedgrpc lead 127.0.0.1:8080
//
// The second one stops between its check and a call. The third one takes over. Let the
// second one go on, with the command that it has printed: its entry is refused.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/examples/door"
	"github.com/elector-go/elector/fence/fencegrpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch arguments := os.Args[1:]; {
	case len(arguments) == 3 && arguments[0] == "serve":
		err = serve(ctx, arguments[1], arguments[2])
	case len(arguments) == 2 && arguments[0] == "lead":
		err = lead(ctx, arguments[1], false)
	case len(arguments) == 3 && arguments[0] == "lead" && arguments[1] == "-late":
		err = lead(ctx, arguments[2], true)
	default:
		err = errors.New("usage: fencedgrpc serve FOLDER ADDRESS | fencedgrpc lead [-late] ADDRESS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fencedgrpc:", err)
		os.Exit(1)
	}
}

// serve keeps a book in the folder. The interceptors are all that fencing takes.
func serve(ctx context.Context, folder, address string) error {
	fence := &fencegrpc.Server{
		Election: "bookkeeper",
		Fence:    &elector.Fence{Keeper: &door.Keeper{Path: filepath.Join(folder, "tokens.json")}},
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(fence.Unary()), grpc.StreamInterceptor(fence.Stream()))
	server.RegisterService(&bookService, &book{door.Book{Path: filepath.Join(folder, "book.txt")}})

	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("serves %s\n", listener.Addr())
	defer context.AfterFunc(ctx, server.Stop)()
	return server.Serve(listener)
}

type book struct{ file door.Book }

func (b *book) Read(context.Context, *emptypb.Empty) (*wrapperspb.StringValue, error) {
	text, err := b.file.Read()
	return wrapperspb.String(text), err
}

func (b *book) Append(_ context.Context, line *wrapperspb.StringValue) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, b.file.Append(line.GetValue())
}

// lead makes entries while this process leads.
func lead(ctx context.Context, address string, isLate bool) error {
	conn, err := grpc.Dial(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	base := grpc.ClientConnInterface(conn)
	if isLate {
		base = late{conn}
	}
	e, err := elector.Open(ctx, os.Getenv("ELECTOR_URL"), "bookkeeper", &elector.Options{TTL: 3 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(e.Run(ctx, func(ctx context.Context, lease *elector.Lease) error {
		fmt.Printf("leads with token %d\n", lease.Token())
		leased := &fencegrpc.Conn{Lease: lease, Base: base} // the connection stays, the lease is a new one
		for {
			// Reading shows the token too: from now on no older leader can write.
			var text wrapperspb.StringValue
			if err := call(leased, readMethod, &emptypb.Empty{}, &text); err != nil {
				return err
			}
			entry := fmt.Sprintf("entry %d, by process %d", door.Count(text.GetValue())+1, os.Getpid())
			if err := call(leased, appendMethod, wrapperspb.String(entry), &emptypb.Empty{}); err != nil {
				return err
			}
			fmt.Println("has written", entry)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil
			}
		}
	}), e.Close())
}

// call makes a call. A refusal is ErrStale: this process has lost its election.
func call(conn grpc.ClientConnInterface, method string, request, response any) error {
	var trailer metadata.MD
	err := conn.Invoke(context.Background(), method, request, response, grpc.Trailer(&trailer))
	if highest, refused := fencegrpc.Refused(err, trailer); refused {
		return fmt.Errorf("refused with %v: %w: the highest token is %d", status.Code(err), elector.ErrStale, highest)
	}
	return err
}

// late pauses the process after the check of the lease and before the call.
type late struct{ *grpc.ClientConn }

func (l late) Invoke(ctx context.Context, method string, request, response any, options ...grpc.CallOption) error {
	if method == appendMethod {
		door.Pause()
	}
	return l.ClientConn.Invoke(ctx, method, request, response, options...)
}
