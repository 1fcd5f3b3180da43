// Package scenarios holds the scenario files that are inside the program, which perfmq scenario list shows, and the
// bodies of their messages.
package scenarios

import "embed"

// FS returns the files, by folder.
func FS() embed.FS { return files }

//go:embed */*.yaml */*.xml */*.json
var files embed.FS
