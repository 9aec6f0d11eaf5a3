package chaos

import (
	"bytes"
	"os"
)

// A logPipe takes what a process logs to a file. It can be told to read no more: then a
// process that logs much waits.
type logPipe struct {
	ours, theirs *os.File
	file         *os.File
	reading      chan struct{} // holds a value while nobody reads
	done         chan struct{}
}

// newLogPipe makes a pipe as short as the system allows. Its end for the process stays open
// until end.
func newLogPipe(path string) (*logPipe, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		file.Close()
		return nil, err
	}
	shorten(theirs)
	p := &logPipe{ours: ours, theirs: theirs, file: file, reading: make(chan struct{}, 1), done: make(chan struct{})}
	go p.read()
	return p, nil
}

// end returns when all that the process has logged is in the file.
func (p *logPipe) end() {
	p.theirs.Close()
	<-p.done
}

// read reads until the process has ended, and the pipe is closed here.
func (p *logPipe) read() {
	defer close(p.done)
	defer p.file.Close()
	defer p.ours.Close()
	buffer := make([]byte, page)
	for {
		p.reading <- struct{}{}
		<-p.reading
		n, err := p.ours.Read(buffer)
		p.file.Write(buffer[:n])
		if err != nil {
			return
		}
	}
}

// hold fills the pipe and lets nobody read it, until release.
func (p *logPipe) hold() (release func()) {
	p.reading <- struct{}{}
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		p.theirs.Write(bytes.Repeat([]byte("\n"), 2*page)) // a read may be under way
	}()
	return func() {
		<-p.reading
		<-filled
	}
}

// page is the least that a pipe holds.
const page = 4096
