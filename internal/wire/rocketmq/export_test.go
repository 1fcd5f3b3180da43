package rocketmq

// Cap returns the memory that an Inflater keeps, in bytes.
func (d *Inflater) Cap() int { return cap(d.out) }
