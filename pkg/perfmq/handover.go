package perfmq

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// beside returns the path of another program of a release: in the folder of this one, or else in the PATH.
func beside(program string) (string, error) {
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if own, err := os.Executable(); err == nil {
		if own, err = filepath.EvalSymlinks(own); err == nil {
			path := filepath.Join(filepath.Dir(own), program)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path, nil
			}
		}
	}
	return exec.LookPath(program)
}
