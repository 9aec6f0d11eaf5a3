// Package door has what the examples fencedhttp and fencedgrpc share.
package door

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/elector-go/elector"
)

// A Keeper keeps the highest token of each resource in a file, for the Fence of one
// process. A service with a database keeps them there: see package fencesql.
type Keeper struct {
	Path  string
	mutex sync.Mutex
}

// Raise implements [elector.Keeper].
func (k *Keeper) Raise(_ context.Context, resource string, token elector.Token) (elector.Token, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	highest := map[string]elector.Token{}
	content, err := os.ReadFile(k.Path)
	if err == nil {
		err = json.Unmarshal(content, &highest)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil || highest[resource] >= token {
		return highest[resource], err
	}
	highest[resource] = token
	if content, err = json.Marshal(highest); err != nil {
		return 0, err
	}
	return token, replace(k.Path, content)
}

// replace writes a file so that a crash leaves the old content or the new one. When
// it returns, the new one is on disk.
func replace(path string, content []byte) error {
	next, err := os.OpenFile(path+".next", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	if err := os.Rename(next.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
