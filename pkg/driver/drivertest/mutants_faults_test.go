package drivertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// lifecycleMutants close wrongly, or mix up connections.
// staged is a driver that changes the reports of stages.
func staged(change func(next driver.Stages, s driver.Stage, took time.Duration)) func() broken {
	of := func(c *driver.Connection) {
		if next := c.Stages; next != nil {
			c.Stages = func(s driver.Stage, took time.Duration) { change(next, s, took) }
		}
	}
	return func() broken {
		return broken{
			sends:    func(s *driver.ProducerSpec) { of(&s.Connection) },
			receives: func(s *driver.ConsumerSpec) { of(&s.Connection) },
		}
	}
}

// slowStages have a length: other stages of mem take no time in a bubble.
func slowStages(cfg *drivertest.Config) {
	cfg.Options = append(cfg.Options, "connect=3ms", "login=5ms", "attach=7ms", "close=2ms")
}

func lifecycleMutants() []mutant {
	return []mutant{
		{name: "one closes the connection of all", check: "Connections", says: "the connection is closed", broken: closesForAll},
		{name: "a connection for each consumer", check: "Connections/Keys", says: "a consumer with the same key", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.Connection.Key = s.Name }}
		}},
		{name: "a connection for each producer", check: "Connections/Keys", says: "a producer with the same key", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) { s.Connection.Key = s.Name }}
		}},
		{name: "one connection for all", check: "Connections/Keys", says: "the first worker with a key", broken: func() broken {
			return broken{
				receives: func(s *driver.ConsumerSpec) { s.Connection.Key = "" },
				sends:    func(s *driver.ProducerSpec) { s.Connection.Key = "" },
			}
		}},
		{name: "a stage is missing", check: "Stages", says: "the stages of a producer", broken: staged(func(next driver.Stages, s driver.Stage, took time.Duration) {
			if s != driver.StageLogin {
				next(s, took)
			}
		})},
		{name: "no stage of closing", check: "Stages", says: "the stages of a closing producer", broken: staged(func(next driver.Stages, s driver.Stage, took time.Duration) {
			if s != driver.StageClose {
				next(s, took)
			}
		})},
		{name: "a stage comes twice", check: "Stages", says: "the stages of a producer", broken: staged(func(next driver.Stages, s driver.Stage, took time.Duration) {
			next(s, took/2)
			next(s, took/2)
		})},
		{name: "a stage takes no time", check: "Stages", says: "the shortest stage", with: slowStages, broken: staged(func(next driver.Stages, s driver.Stage, took time.Duration) {
			next(s, took*time.Duration(min(s, 1)))
		})},
		{name: "a stage has the time of those before it", check: "Stages", says: "the sum of the stages", with: slowStages, broken: staged(func(next driver.Stages, s driver.Stage, took time.Duration) {
			if s == driver.StageLogin {
				took *= 2
			}
			next(s, took)
		})},
		{name: "a shared connection has stages", check: "Stages", says: "the stages on the connection of another worker", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) { s.Connection.Key = s.Name }}
		}},
		{name: "a bare connection does not report its end", check: "Connect", says: "an idle producer has not reported the end", broken: func() broken {
			return broken{connect: func(h driver.Held) driver.Held { return deafHeld{h} }}
		}},
		{name: "a bare connection reports its end twice", check: "Connect", says: "reported twice", broken: func() broken {
			return broken{connect: func(h driver.Held) driver.Held { return twiceHeld{h} }}
		}},
		{name: "a bare connection is not closed", check: "Connect", says: "the stages of a closing connection", broken: func() broken {
			return broken{connect: func(h driver.Held) driver.Held { return openHeld{h} }}
		}},
		{name: "close does not wait", check: "Close/InFlight", says: "Done was never called for", broken: func() broken {
			return broken{done: ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) {
				time.AfterFunc(50*time.Millisecond, func() { done.Done(s, o) })
			})}
		}},
		{name: "second close fails", check: "Close/InFlight", says: "Producer.Close, called again", broken: func() broken {
			return broken{closeP: func(p *producer, ctx context.Context) error {
				if p.d.mark("closed") {
					return errors.New("closed already")
				}
				return p.Producer.Close(ctx)
			}}
		}},
		{name: "second close of a consumer fails", check: "Close/InFlight", says: "Consumer.Close, called again", broken: func() broken {
			return broken{closeC: func(c *consumer, ctx context.Context) error {
				if c.n++; c.n > 1 {
					return errors.New("closed already")
				}
				return c.Consumer.Close(ctx)
			}}
		}},
		{name: "done after close", check: "Close/Expired", says: "after Close had returned", broken: func() broken {
			return doneLate(5 * time.Millisecond)
		}},
		{name: "close waits whatever its context says", check: "Close/Expired", says: "took its time", broken: func() broken {
			return broken{closeP: func(p *producer, ctx context.Context) error {
				if !p.d.mark("closed") {
					pause(75 * time.Second) // beyond the grace
				}
				return p.Producer.Close(ctx)
			}}
		}},
	}
}

func doneLate(by time.Duration) broken {
	return broken{closeP: func(p *producer, ctx context.Context) error {
		done := p.done
		defer time.AfterFunc(by, func() { done.Done(driver.NewSlot(0, 1), driver.Outcome{}) })
		return p.Producer.Close(ctx)
	}}
}

func pause(d time.Duration) { <-time.After(d) }

// closesForAll ends all producers of a connection with the first one that closes.
func closesForAll() broken {
	return broken{
		send: func(p *producer, ctx context.Context, m *driver.Message) error {
			if p.d.marked(p.spec.Connection.Key) {
				return driver.Errorf(driver.ClassConnectionLost, "send", "", "the connection is closed")
			}
			return p.Producer.Send(ctx, m)
		},
		closeP: func(p *producer, ctx context.Context) error {
			p.d.mark(p.spec.Connection.Key)
			return p.Producer.Close(ctx)
		},
	}
}

// faultMutants hide faults of the network, or hang in them.
func faultMutants() []mutant {
	class := func(to driver.Class, hint string) func(error) error {
		return func(err error) error { return driver.Errorf(to, "connect", hint, "%w", err) }
	}
	accepting := outcomes(func(driver.Outcome) driver.Outcome { return driver.Outcome{} })
	return append([]mutant{
		{name: "refused is accepted", check: "Fault/Refused", says: "sends that the broker has refused|100 of 200 came", broken: func() broken {
			return broken{done: accepting}
		}},
		{name: "accepted is refused", check: "Fault/Refused", only: "queue", says: "although the broker had refused them", broken: func() broken {
			return broken{done: outcomes(func(driver.Outcome) driver.Outcome {
				return driver.Outcome{State: driver.Rejected, Class: driver.ClassOther}
			})}
		}},
		{name: "wrong class", check: "Fault/Unreachable", says: "class of", broken: func() broken {
			return broken{opened: class(driver.ClassOther, "do something")}
		}},
		{name: "no hint", check: "Fault/Unreachable", says: "no hint with", broken: func() broken {
			return broken{opened: func(err error) error { return driver.Errorf(driver.ClassConnect, "connect", "", "%v", err) }}
		}},
		{name: "connect timeout ignored", check: "Fault/Silent", says: "opening a connection to mem://line-1 did not return", broken: func() broken {
			return broken{open: func(o *driver.OpenOptions) { o.ConnectTimeout = time.Hour }}
		}},
		{name: "password ignored", check: "Fault/WrongPassword", says: "An error is expected", broken: func() broken {
			return broken{open: func(o *driver.OpenOptions) { o.Password = "p" }}
		}},
		{name: "a wrong password is a failed connection", check: "Fault/WrongPassword", says: "class of", broken: func() broken {
			return broken{opened: class(driver.ClassConnect, "do something")}
		}},
		{name: "send hides the end of its context", check: "Fault/Frozen", says: "with a context that ended", broken: func() broken {
			return broken{send: func(p *producer, ctx context.Context, m *driver.Message) error {
				if err := p.Producer.Send(ctx, m); err != nil {
					return driver.Errorf(driver.ClassOther, "send", "", "%v", err)
				}
				return nil
			}}
		}},
		{name: "run returns an error without a class", check: "Fault/Cut", says: "class of the error of Run", broken: func() broken {
			return broken{run: func(c *consumer, ctx context.Context, next deliver) error {
				if err := c.Consumer.Run(ctx, next); err != nil {
					return errors.New("it is over")
				}
				return nil
			}}
		}},
		{name: "send ignores its context", check: "Fault/Frozen", says: "Send, after the end of its context, did not return", broken: func() broken {
			return broken{send: func(p *producer, _ context.Context, m *driver.Message) error { return p.Producer.Send(p.d.end, m) }}
		}},
		{name: "one in flight, and more", check: "Fault/Frozen", says: "messages in flight", broken: func() broken {
			return broken{factory: func(f *driver.Factory) {
				f.InFlight = func(any, *driver.ProducerSpec) driver.InFlight { return driver.InFlight{Messages: 1} }
			}}
		}},
		{name: "one in flight, and silent about it", check: "Fault/Frozen", says: "Send waits for an answer", broken: func() broken {
			var sent, ended atomic.Int64
			return broken{
				done: ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) { done.Done(s, o); ended.Add(1) }),
				send: func(p *producer, ctx context.Context, m *driver.Message) error {
					err := p.Producer.Send(ctx, m)
					if err != nil {
						return err
					}
					for n := sent.Add(1); ended.Load() < n && ctx.Err() == nil; {
						pause(time.Millisecond)
					}
					return nil
				},
			}
		}},
		{name: "close hangs", check: "Fault/Frozen", says: "Producer.Close did not return", broken: func() broken {
			return broken{closeP: func(p *producer, _ context.Context) error {
				<-p.d.end.Done()
				return p.Producer.Close(p.d.end)
			}}
		}},
		{name: "accepted on a frozen line", check: "Fault/Frozen", says: "sends to a frozen broker were accepted", broken: handing},
		{name: "pending is accepted when the connection is lost", check: "Fault/Cut", says: "want the first 100 only", broken: func() broken {
			return broken{done: accepting}
		}},
		{name: "accepted without confirmation", check: "Fault/Cut", says: "want the first 100 only", broken: handing},
		{name: "the end of an idle connection is not noticed", check: "Fault/Idle", says: "has not reported the end", broken: func() broken {
			return broken{onEnd: func(func(error)) func(error) { return func(error) {} }}
		}},
		{name: "the end before OnEnd is forgotten", check: "Fault/Idle", says: "has not reported the end", broken: func() broken {
			calls := 0
			return broken{onEnd: func(ended func(error)) func(error) {
				if calls++; calls%2 == 0 {
					return func(error) {}
				}
				return ended
			}}
		}},
		{name: "the end is reported twice", check: "Fault/Idle", says: "was reported twice", broken: func() broken {
			return broken{onEnd: func(ended func(error)) func(error) { return func(why error) { ended(why); ended(why) } }}
		}},
		{name: "the end without class", check: "Fault/Idle", says: "class of the end", broken: func() broken {
			return broken{onEnd: func(ended func(error)) func(error) { return func(error) { ended(errors.New("x")) } }}
		}},
		{name: "the end is reported before", check: "Fault/Idle", says: "the end of a connection that is there", broken: func() broken {
			return broken{onEnd: func(ended func(error)) func(error) { ended(errors.New("x")); return ended }}
		}},
		{name: "done without class", check: "Fault/Cut", says: "without a class of failure", broken: func() broken {
			return broken{done: outcomes(func(o driver.Outcome) driver.Outcome { return driver.Outcome{State: o.State} })}
		}},
		{name: "lost sends have failed", check: "Fault/Cut", says: "want Accepted or Unknown", broken: func() broken {
			return broken{done: outcomes(func(o driver.Outcome) driver.Outcome {
				if o.State == driver.Unknown {
					o.State = driver.Failed
				}
				return o
			})}
		}},
		{name: "run hides a lost connection", check: "Fault/Cut", says: "Run returned nil although", broken: func() broken {
			return broken{run: func(c *consumer, ctx context.Context, next deliver) error {
				_ = c.Consumer.Run(ctx, next)
				return nil
			}}
		}},
		{name: "accepts on a lost connection", check: "Fault/Cut", says: "Send on a connection that has ended", broken: func() broken {
			return broken{send: func(p *producer, ctx context.Context, m *driver.Message) error {
				err := p.Producer.Send(ctx, m)
				if driver.ClassOf(err) == driver.ClassConnectionLost {
					p.done.Done(m.Slot, driver.Outcome{State: driver.Unknown, Class: driver.ClassConnectionLost})
					return nil
				}
				return err
			}}
		}},
	}, againMutants()...)
}

// againMutants cannot be used after a cut.
func againMutants() []mutant {
	return []mutant{
		{name: "a lost connection is kept", check: "Fault/Cut", says: "subscribe again", broken: func() broken {
			return broken{
				run: func(c *consumer, ctx context.Context, next deliver) error {
					err := c.Consumer.Run(ctx, next)
					if err != nil {
						c.d.mark("lost")
					}
					return err
				},
				consumer: func(d *brokenDriver, ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
					if d.marked("lost") {
						return nil, driver.Errorf(driver.ClassConnectionLost, "open a consumer", "", "the connection was lost")
					}
					return d.openConsumer(ctx, s)
				},
			}
		}},
		{name: "the end of the old ends the new", check: "Fault/Cut", says: "the connection is closed", broken: closesForAll},
	}
}

// optionalMutants are wrong in the optional interfaces of a driver, and in its cost.
func optionalMutants() []mutant {
	return append(costMutants(), []mutant{
		{name: "always alive", check: "Probe", says: "Probe of a broker that does not answer", broken: func() broken {
			return broken{probe: func(*consumer, context.Context) error { return nil }}
		}},
		{name: "never alive", check: "Probe", says: "Probe of a broker that is alive", broken: func() broken {
			return broken{probe: func(*consumer, context.Context) error { return errors.New("no") }}
		}},
		{name: "probe ignores its context", check: "Probe", says: "Probe did not return", broken: func() broken {
			return broken{probe: func(c *consumer, ctx context.Context) error {
				if err := c.Consumer.(driver.Prober).Probe(ctx); err != nil {
					<-c.d.end.Done()
				}
				return nil
			}}
		}},
		{name: "adds one", check: "Inspect", says: "Added is", broken: func() broken {
			var added uint64
			return broken{inspect: func(list []driver.DestinationCount) {
				if n := &list[len(list)-1]; n.Added.N > 0 {
					added++
					n.Added.N += added
				}
			}}
		}},
		{name: "counters in the order of names", check: "Inspect", says: "a destination that nobody uses|is 0 instead of", broken: func() broken {
			return broken{inspect: func(list []driver.DestinationCount) { slices.Reverse(list) }}
		}},
		{name: "counts what is not there", check: "Inspect", says: "a destination that nobody uses", broken: func() broken {
			return broken{inspect: func(list []driver.DestinationCount) { list[0].Depth.N++ }}
		}},
		{name: "has no depth", check: "Inspect", says: "Depth is", broken: func() broken {
			return broken{inspect: func(list []driver.DestinationCount) { list[len(list)-1].Depth.N = 0 }}
		}},
		{name: "does not count what is added", check: "Inspect", says: "messages added are known", broken: func() broken {
			return broken{inspect: func(list []driver.DestinationCount) { list[len(list)-1].Added = driver.Count{} }}
		}},
		{name: "no host", check: "Located", says: "the host of a", broken: func() broken {
			return broken{host: func(string) string { return "" }}
		}},
		{name: "always the first host", check: "Located", says: "the host of a", broken: func() broken {
			var first string
			var mu sync.Mutex
			return broken{host: func(host string) string {
				mu.Lock()
				defer mu.Unlock()
				if first == "" {
					first = host
				}
				return first
			}}
		}},
		{name: "its own order of hosts", check: "Located", says: "bytes from the first host in the order", broken: func() broken {
			return broken{
				receives: func(s *driver.ConsumerSpec) { s.Connection.Order = nil },
				sends:    func(s *driver.ProducerSpec) { s.Connection.Order = nil },
			}
		}},
		{name: "hosts beyond its order", check: "Located", says: "only the host that is cut off", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) {
				if o := s.Connection.Order; len(o) == 1 {
					s.Connection.Order = []int{o[0], 1 - o[0]}
				}
			}}
		}},
		{name: "hosts of any text", check: "Located", says: "what is no URL", broken: func() broken {
			return broken{factory: func(f *driver.Factory) {
				f.Hosts = func(url string) []string { return strings.Split(strings.TrimPrefix(url, "mem://"), ",") }
			}}
		}},
		{name: "knows no broker", check: "Identified", says: "it does not know its broker", broken: func() broken {
			return broken{identify: func(*brokenDriver) (string, string) { return "", "" }}
		}},
		{name: "knows no version", check: "Identified", says: "the broker's version", broken: func() broken {
			return broken{identify: func(*brokenDriver) (string, string) { return "Artemis", "" }}
		}},
		{name: "forgets its broker", check: "Identified", says: "before and after Close", broken: func() broken {
			return broken{identify: func(d *brokenDriver) (string, string) {
				if d.mark("asked") && d.mark("asked again") {
					return "", ""
				}
				return "Artemis", "2.40.0"
			}}
		}},
		{name: "a whole story", check: "Identified", says: "the length of what the broker says", broken: func() broken {
			return broken{identify: func(*brokenDriver) (string, string) { return strings.Repeat("x", 1000), "1" }}
		}},
		{name: "counters go back", check: "Counting", says: "went back", broken: func() broken {
			var n uint64 = 1000
			var mu sync.Mutex
			return broken{counters: func(list []driver.Counter) []driver.Counter {
				mu.Lock()
				defer mu.Unlock()
				n--
				list[0].Value = n
				return list
			}}
		}},
		{name: "counters in upper case", check: "Counting", says: "the name of a counter", broken: func() broken {
			return broken{counters: func(list []driver.Counter) []driver.Counter {
				list[0].Name = strings.ToUpper(list[0].Name)
				return list
			}}
		}},
		{name: "counters in no order", check: "Counting", says: "the order of counters changed", broken: func() broken {
			var mu sync.Mutex
			turn := false
			return broken{counters: func(list []driver.Counter) []driver.Counter {
				mu.Lock()
				defer mu.Unlock()
				if len(list) < 2 {
					return list
				}
				if turn = !turn; turn {
					list[0], list[1] = list[1], list[0]
				}
				return list
			}}
		}},
		{name: "waits not measured", check: "Waits", says: "it has not waited", broken: func() broken {
			return broken{waits: func(driver.Waits) driver.Waits { return driver.Waits{Input: driver.Idle{Known: true}} }}
		}},
		{name: "waits are half of what they are", check: "Waits", says: "half of what has passed", broken: func() broken {
			return broken{waits: func(w driver.Waits) driver.Waits {
				w.Input.Time = w.Input.Time * 2 / 5
				return w
			}}
		}},
		{name: "waits are twice what they are", check: "Waits", says: "has waited, and what has passed", broken: func() broken {
			return broken{waits: func(w driver.Waits) driver.Waits {
				w.Input.Time *= 2
				return w
			}}
		}},
		{name: "a blocked producer says nothing", check: "Waits", says: "whose Send was blocked by the broker", broken: func() broken {
			return broken{waits: func(w driver.Waits) driver.Waits {
				w.Credit, w.Socket = driver.Wait{}, driver.Wait{}
				return w
			}}
		}},
	}...)
}

var sink [8]*driver.Message // where garbage is seen from

// costMutants do more than they have to.
func costMutants() []mutant {
	return []mutant{
		{name: "allocates for each send", check: "Allocations", says: "allocations of memory per message", broken: func() broken {
			return broken{send: func(p *producer, ctx context.Context, m *driver.Message) error {
				for i := range sink {
					garbage := *m
					sink[i] = &garbage
				}
				return p.Producer.Send(ctx, m)
			}}
		}},
		{name: "allocates for each delivery", check: "Allocations", says: "allocations of memory per message", broken: func() broken {
			return broken{deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				for range 8 {
					garbage := make([]byte, len(d.Body))
					copy(garbage, d.Body)
					d.Body = garbage
				}
				return next(d)
			}}
		}},
	}
}

// refusalMutants accept features that they do not declare: one for each feature that can be asked for.
func refusalMutants() []mutant {
	list := []mutant{
		{
			name: "what the broker lacks is ignored", check: "Refuses/Selector", says: "this broker lacks Selector (for the test's sake), but nothing was said",
			broken: func() broken { return broken{} }, with: lacking(drivertest.Selector),
		},
		{
			name: "sends what the broker lacks", check: "Refuses/TTL", says: "this broker lacks TTL (for the test's sake), but a send was accepted",
			broken: func() broken { return broken{} }, with: lacking(drivertest.TTL),
		},
		{
			name: "sends in transactions that the broker lacks", check: "Refuses/Transactions", says: "but a send was accepted",
			broken: func() broken { return broken{} }, with: lacking(drivertest.Transactions),
		},
		{
			name: "has queues though it says that it has none", check: "Refuses/Queues", says: "Capabilities say that queues have no Queues",
			broken: func() broken { return broken{factory: func(f *driver.Factory) { f.Capabilities.Queue.Exists = false }} },
		},
		{
			name: "has topics though it says that it has none", check: "Refuses/Topics", says: "Capabilities say that topics have no Topics",
			broken: func() broken { return broken{factory: func(f *driver.Factory) { f.Capabilities.Topic.Exists = false }} },
		},
		{
			name: "refuses with another class", check: "Refuses/DurableSubscription/queue", says: "class of", broken: func() broken {
				return broken{opened: func(err error) error { return driver.Errorf(driver.ClassOther, "open", "", "%v", err) }}
			},
		},
		{
			name: "durable queues", check: "Refuses/DurableSubscription/queue", says: "queues have no DurableSubscription, but what needs it was accepted",
			broken: func() broken { return broken{receives: func(s *driver.ConsumerSpec) { s.Durable = false }} },
		},
		{
			name: "shared queues", check: "Refuses/SharedSubscription/queue", says: "queues have no SharedSubscription, but what needs it was accepted",
			broken: func() broken { return broken{receives: func(s *driver.ConsumerSpec) { s.Shared = false }} },
		},
	}
	for _, f := range drivertest.Features() {
		if f == drivertest.Queues || f == drivertest.Topics || !drivertest.Asked(f) {
			continue
		}
		says := "s have no " + string(f) + ", but what needs it was accepted"
		list = append(list, mutant{
			name: "has " + string(f) + " though it says that it has not", check: "Refuses/" + string(f), says: says,
			broken: func() broken { return broken{factory: func(f2 *driver.Factory) { *f2 = without(*f2, f) }} },
		})
	}
	for i := range list { // queues have neither, and mem refuses them: see above
		if c := list[i].check; c == "Refuses/DurableSubscription" || c == "Refuses/SharedSubscription" {
			list[i].only = "topic"
		}
	}
	return list
}

// deafHeld does not report its end, twiceHeld twice; openHeld does not close.
type (
	deafHeld  struct{ driver.Held }
	twiceHeld struct{ driver.Held }
	openHeld  struct{ driver.Held }
)

func (deafHeld) OnEnd(func(error)) {}

func (h twiceHeld) OnEnd(f func(error)) {
	h.Held.OnEnd(func(why error) {
		f(why)
		f(why)
	})
}

func (openHeld) Close(context.Context) error { return nil }
