package file
import (_ "github.com/fsnotify/fsnotify"; _ "golang.org/x/sys/unix")
