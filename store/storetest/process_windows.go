package storetest

import (
	"errors"
	"os"
	"syscall"
)

const prefix = "throwbar-pg-"

var errHere = errors.New("the tests on PostgreSQL do not run on Windows")

func unprivileged(string) (*syscall.SysProcAttr, error) { return nil, errHere }

func lockFolder(string) (*os.File, error) { return nil, errHere }

func removeStale() {}
