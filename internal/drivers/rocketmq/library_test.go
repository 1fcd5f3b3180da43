//go:build unix

package rocketmq

// quiet is a logger, of the library that is a peer in tests, that says nothing.
type quiet struct{}

func (quiet) Debug(string, map[string]interface{})   {}
func (quiet) Info(string, map[string]interface{})    {}
func (quiet) Warning(string, map[string]interface{}) {}
func (quiet) Error(string, map[string]interface{})   {}
func (quiet) Fatal(string, map[string]interface{})   {}
func (quiet) Level(string)                           {}
func (quiet) OutputPath(string) error                { return nil }
