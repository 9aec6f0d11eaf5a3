package main

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// This file is what protoc-gen-go-grpc would make of
//
//	service Book {
//		rpc Read(google.protobuf.Empty) returns (google.protobuf.StringValue);
//		rpc Append(google.protobuf.StringValue) returns (google.protobuf.Empty);
//	}
const (
	readMethod   = "/Book/Read"
	appendMethod = "/Book/Append"
)

type bookServer interface {
	Read(context.Context, *emptypb.Empty) (*wrapperspb.StringValue, error)
	Append(context.Context, *wrapperspb.StringValue) (*emptypb.Empty, error)
}

var bookService = grpc.ServiceDesc{
	ServiceName: "Book",
	HandlerType: (*bookServer)(nil),
	Methods: []grpc.MethodDesc{
		{MethodName: "Read", Handler: handler(readMethod, bookServer.Read)},
		{MethodName: "Append", Handler: handler(appendMethod, bookServer.Append)},
	},
}

func handler[Request, Response any](method string, call func(bookServer, context.Context, *Request) (Response, error)) func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
	return func(service any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		request := new(Request)
		if err := decode(request); err != nil {
			return nil, err
		}
		return interceptor(ctx, request, &grpc.UnaryServerInfo{Server: service, FullMethod: method}, func(ctx context.Context, request any) (any, error) {
			return call(service.(bookServer), ctx, request.(*Request))
		})
	}
}
