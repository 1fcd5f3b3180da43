package load_test

import (
	"testing"

	"github.com/perfmq/perfmq/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
