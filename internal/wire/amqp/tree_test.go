package amqp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// described, list, entry and array are values that contain others.
type (
	described struct {
		descriptor, value any
	}
	entry struct{ key, value any }
	list  []any
	dict  []entry
	array struct {
		code  byte
		bytes []byte
	}
)

// tree returns a value with all that is in it, so that encodings of the same value are equal.
func tree(t testing.TB, b []byte) any {
	t.Helper()
	v, rest := grow(t, b, 0)
	require.Empty(t, rest)
	return v
}

// grow returns the value at the front of b, and the bytes after it.
func grow(t testing.TB, b []byte, depth int) (any, []byte) {
	t.Helper()
	require.Less(t, depth, 100, "values nest too deep")
	d := amqp.NewDecoder(b)
	switch d.Peek() {
	case amqp.CodeDescribed:
		raw := d.Raw()
		require.NoError(t, d.Err())
		descriptor, rest := grow(t, raw[1:], depth+1)
		value, rest := grow(t, rest, depth+1)
		require.Empty(t, rest)
		return described{descriptor, value}, d.Rest()
	case amqp.CodeList0, amqp.CodeList8, amqp.CodeList32:
		in, _ := d.List()
		require.NoError(t, d.Err())
		v := list{}
		for in.More() {
			v = append(v, element(t, &in, depth))
		}
		return v, d.Rest()
	case amqp.CodeMap8, amqp.CodeMap32:
		in, _ := d.Map()
		require.NoError(t, d.Err())
		v := dict{}
		for in.More() {
			v = append(v, entry{element(t, &in, depth), element(t, &in, depth)})
		}
		return v, d.Rest()
	case amqp.CodeArray8:
		raw := d.Raw()
		require.NoError(t, d.Err())
		return array{raw[2], raw[3:]}, d.Rest()
	case amqp.CodeArray32:
		raw := d.Raw()
		require.NoError(t, d.Err())
		return array{raw[8], raw[9:]}, d.Rest()
	}
	v := d.Scalar()
	require.NoError(t, d.Err())
	return v, d.Rest()
}

func element(t testing.TB, in *amqp.Decoder, depth int) any {
	t.Helper()
	if in.Peek() == amqp.CodeNull {
		in.Skip()
		require.NoError(t, in.Err())
		return nil
	}
	raw := in.Raw()
	require.NoError(t, in.Err())
	v, rest := grow(t, raw, depth+1)
	require.Empty(t, rest)
	return v
}
