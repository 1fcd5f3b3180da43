package config

import (
	_ "embed"
	"slices"
)

//go:embed skeleton.yaml
var skeleton []byte

// Skeleton returns an example to begin with: a scenario file with comments.
func Skeleton() []byte { return slices.Clone(skeleton) }
