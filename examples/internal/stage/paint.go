package stage

import "os"

// Colours of Paint.
const (
	Plain  = ""
	Green  = "32"
	Yellow = "33"
	Red    = "31"
	Bold   = "1"
)

// A Painter colours text if that is wanted.
type Painter bool

// PainterFor returns a Painter that colours on a terminal.
func PainterFor(f *os.File) Painter {
	info, err := f.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return Painter(terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// Paint returns the text in a colour.
func (p Painter) Paint(colour, text string) string {
	if !p || colour == Plain {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
