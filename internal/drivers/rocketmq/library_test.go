//go:build unix

package rocketmq

import (
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// quiet is a logger that says nothing.
type quiet struct{}

func (quiet) Debug(string, map[string]interface{})   {}
func (quiet) Info(string, map[string]interface{})    {}
func (quiet) Warning(string, map[string]interface{}) {}
func (quiet) Error(string, map[string]interface{})   {}
func (quiet) Fatal(string, map[string]interface{})   {}
func (quiet) Level(string)                           {}
func (quiet) OutputPath(string) error                { return nil }

// silenceLibrary keeps the library, a peer in tests, from logging.
func silenceLibrary() { rlog.SetLogger(quiet{}) }
