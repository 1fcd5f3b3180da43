// Package scenarios holds the scenario files that are inside the program: perfmq scenario list shows them.
package scenarios

import "embed"

// FS returns the files, by folder.
func FS() embed.FS { return files }

//go:embed */*.yaml
var files embed.FS
