package store

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPathsFromTheWorkingFolder backs up, and looks at a database, by paths that do not begin with a slash, as people
// type them, in a folder whose name means something in a URI.
func TestPathsFromTheWorkingFolder(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	check(t, err)
	folder := filepath.Join(t.TempDir(), "a b?c#d%41")
	check(t, os.Mkdir(folder, 0o700))
	dir, err := filepath.Rel(here, folder)
	check(t, err)
	check(t, opened(t, onSQLite(), Config{Dir: dir}).Close())
	if line, err := Look(t.Context(), Config{Dir: dir}); err != nil {
		t.Errorf("Look: %q, %v", line, err)
	}
	target := filepath.Join(dir, "copy.db")
	copied, err := BackupDir(t.Context(), dir, target)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(target)
	check(t, err)
	if copied.Bytes != info.Size() || len(copied.Tables) == 0 {
		t.Errorf("the copy is %+v, the file has %d bytes", copied, info.Size())
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*.part")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
