package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestBackupDir copies beside a server in another process, after it was killed, and when none runs.
func TestBackupDir(t *testing.T) {
	t.Parallel()
	config := place(t, onSQLite(), Config{})
	process, out, _ := child(t, "TestChildWrites", config)
	for range 50 {
		if !out.Scan() {
			t.Fatal("the child has ended")
		}
	}
	go func() { // so that it does not wait for a reader
		for out.Scan() {
		}
	}()
	copies := t.TempDir()
	take := func(name string, least int64) {
		t.Helper()
		dir := filepath.Join(copies, name)
		check(t, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, databaseName)
		copied, err := BackupDir(t.Context(), config.Dir, path)
		check(t, err)
		info, err := os.Stat(path)
		check(t, err)
		n := slices.IndexFunc(copied.Tables, func(t TableRows) bool { return t.Name == "srv_command" })
		if copied.Bytes != info.Size() || info.Mode().Perm() != 0o600 || n < 0 || copied.Tables[n].Rows < least {
			t.Errorf("%s: copy is %+v, file has %d bytes and mode %v", name, copied, info.Size(), info.Mode())
		}
		restored := opened(t, onSQLite(), Config{Dir: dir})
		assertSound(t, restored)
		rows, err := restored.Read().ListCommands(t.Context(), listCommands("default"))
		check(t, err)
		if int64(len(rows)) != copied.Tables[n].Rows {
			t.Errorf("%s: %d rows, %d are told", name, len(rows), copied.Tables[n].Rows)
		}
	}
	take("beside a server", 50)
	check(t, process.Process.Kill())
	_ = process.Wait() // it was killed
	if info, err := os.Stat(filepath.Join(config.Dir, databaseName+"-wal")); err != nil || info.Size() == 0 {
		t.Fatalf("the killed server left no log: %v", err)
	}
	take("after a kill", 50)
	s, err := Open(t.Context(), config)
	check(t, err)
	check(t, s.Close())
	take("without a server", 50)
	check(t, opened(t, onSQLite(), config).Close()) // and it can start again

	if _, err := BackupDir(t.Context(), config.Dir, filepath.Join(copies, "after a kill", databaseName)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: error is %v, want ErrExist", err)
	}
	if _, err := BackupDir(t.Context(), t.TempDir(), filepath.Join(copies, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no database: error is %v, want ErrNotExist", err)
	}
	if left, err := filepath.Glob(filepath.Join(copies, "*", "*.part")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestBackupOfADamagedDatabase is none: the copy is read before it gets its name.
func TestBackupOfADamagedDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, databaseName), make([]byte, 1<<16), 0o600))
	copies := t.TempDir()
	if _, err := BackupDir(t.Context(), dir, filepath.Join(copies, "copy")); !errors.Is(err, ErrDamaged) {
		t.Errorf("error is %v, want ErrDamaged", err)
	}
	if left, err := os.ReadDir(copies); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
