// Package storeurl reads the parts of a store's URL that several backends have
// in common.
package storeurl

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Misread reports whether a part of a password with special characters was read as
// something else, and would be shown.
func Misread(u *url.URL) bool {
	return u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path, "@") || u.User == nil && strings.Contains(u.RawQuery, "@")
}

// Hosts returns the servers that a URL names, with the port where one has none.
func Hosts(u *url.URL, port string) ([]string, error) {
	var hosts []string
	for _, host := range strings.Split(u.Host, ",") {
		if host == "" {
			return nil, fmt.Errorf("it names no host, or an empty one; write %s://host:%s/prefix", u.Scheme, port)
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host += ":" + port
		}
		if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" {
			return nil, errors.New("a host is not of the form host:port, or [address]:port for IPv6")
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}
