package binaries

import (
	"errors"
	"os"
	"path/filepath"
)

// ZooKeeperMain is the class that is a ZooKeeper server.
const ZooKeeperMain = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// ZooKeeperClasses are the archives that a server needs, in the order of the
// class path. ZooKeeper's own, which name Debian's folders of the others, are
// the last.
var ZooKeeperClasses = []string{
	"slf4j-api.jar", "slf4j-simple.jar",
	"metrics-core.jar",
	"snappy-java.jar",
	"commons-cli.jar", "commons-io.jar",
	"jackson-annotations.jar", "jackson-core.jar", "jackson-databind.jar",
	"netty-buffer.jar", "netty-codec.jar", "netty-common.jar", "netty-handler.jar", "netty-resolver.jar",
	"netty-transport.jar", "netty-transport-native-epoll.jar", "netty-transport-native-unix-common.jar",
	"zookeeper-jute.jar", "zookeeper.jar",
}

// ZooKeeperPath returns the folder where ZooKeeper's Java archives are, or
// would be once they are fetched.
func ZooKeeperPath() (string, error) { return within("zookeeper-" + ZooKeeperVersion) }

// ZooKeeper returns the fetched ZooKeeper's class path.
func ZooKeeper() ([]string, error) {
	path, err := ZooKeeperPath()
	if err != nil {
		return nil, err
	}
	return ZooKeeperIn(path)
}

// ZooKeeperIn returns the class path of the archives in a folder.
func ZooKeeperIn(dir string) (classes []string, err error) {
	for _, name := range ZooKeeperClasses {
		class := filepath.Join(dir, name)
		_, missing := os.Stat(class)
		classes, err = append(classes, class), errors.Join(err, missing)
	}
	return classes, err
}
