//go:build features

package stomp

import "testing"

// TestConformanceOld takes part in `make features` only: see scripts/features.sh.
func TestConformanceOld(t *testing.T) { conformance(t, "version=1.1", "ack=client-individual") }
