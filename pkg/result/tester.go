package result

// Tester is perfmq's own use of its machine.
type Tester struct {
	// CPU is the processor time that perfmq used.
	CPU int64 `json:"cpu" metric:"tester_cpu_seconds_total" help:"Processor time used by this process since the load began."`
	// Cores is the number of processors that it may use at once.
	Cores int `json:"cores" metric:"tester_cores" help:"Processors that this process may use at once."`
	// Memory is its resident memory in bytes: at the end of an interval, or the maximum of a whole run; 0 where the
	// system does not report it.
	Memory uint64 `json:"memory,omitempty" metric:"tester_memory_bytes,omitempty" help:"Resident memory of this process."`
	// MemoryPeak is the peak of its resident memory in bytes; of a whole run only.
	MemoryPeak uint64 `json:"memoryPeak,omitempty"`
	// MachineBusy is the processor time that all programs of the machine used, MachineAll the processor time that was
	// available; 0 where the system does not report it.
	MachineBusy int64 `json:"machineBusy,omitempty" metric:"machine_cpu_busy_seconds_total,omitempty" help:"Processor time used by all programs since the load began."`
	MachineAll  int64 `json:"machineAll,omitempty" metric:"machine_cpu_seconds_total,omitempty" help:"Processor time of the machine since the load began."`
	// Pauses is the number of pauses of perfmq, PauseMax is the longest.
	Pauses   uint64 `json:"pauses,omitempty" metric:"tester_pauses_total" help:"Pauses of this process."`
	PauseMax int64  `json:"pauseMax,omitempty" metric:"tester_pause_max_seconds" help:"The longest of them."`
	// GCPause is the time for which its own garbage collections stopped all of its threads.
	GCPause int64 `json:"gcPause,omitempty"`
	// LateExcused are the late sends that are not perfmq's fault: while other programs kept the machine busy, and
	// after a pause.
	LateExcused uint64 `json:"lateExcused,omitempty"`
	// ClockForward and ClockBackward are how far the wall clock was set.
	ClockForward  int64 `json:"clockForward,omitempty" metric:"tester_clock_step_seconds_total" label:"direction=forward" help:"Steps of the wall clock, forward and backward."`
	ClockBackward int64 `json:"clockBackward,omitempty" metric:"tester_clock_step_seconds_total" label:"direction=backward" help:"Steps of the wall clock, forward and backward."`

	// Wall is the time in which this was measured, PauseAt the moment at which the longest pause ended, and Delay the
	// time for which threads of perfmq, added up, waited for a processor, if DelayKnown; only during a run.
	Wall, PauseAt int64 `json:"-"`
	Delay         int64 `json:"-" metric:"tester_processor_wait_seconds_total,omitempty" help:"Total time in which threads of this process waited for a processor."`
	DelayKnown    bool  `json:"-"`
}

// Limits above which perfmq counts as unfit to measure.
const (
	// MaxCPUShare is the share of its processors that perfmq may use, and the share of the machine's processors
	// that all programs may use.
	MaxCPUShare = 0.9
	// MaxOthersShare is the share of a busy machine that other programs may use.
	MaxOthersShare = 0.1
	// MaxLateShare is the share of sends that may leave late, and MinLate the smallest number that is worth a warning.
	MaxLateShare = 0.01
	MinLate      = 20
)

// CPUShare returns the processor time used as a share of the time that perfmq may use: 1 is all of it.
func (t *Tester) CPUShare() float64 { return share(t.CPU, t.Wall*int64(t.Cores)) }

// MachineShare returns the share of the machine's processor time that all processes used: 1 is all of it. It is 0 if
// unknown.
func (t *Tester) MachineShare() float64 { return share(t.MachineBusy, t.MachineAll) }

// OthersShare returns the share of the machine's processor time that other processes used.
func (t *Tester) OthersShare() float64 { return share(max(0, t.MachineBusy-t.CPU), t.MachineAll) }

func share(part, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// Crowded reports whether other programs kept the machine's processors so busy that perfmq had to wait for one. The
// measured latencies include that wait.
func (t *Tester) Crowded() bool {
	return t.MachineShare() > MaxCPUShare && t.OthersShare() > MaxOthersShare
}

// Late reports whether n late sends, of all sent, may have limited the load: a few are not significant.
func Late(n, sent uint64) bool { return n >= MinLate && float64(n) > MaxLateShare*float64(sent) }

// Follow adds the next interval.
func (t *Tester) Follow(next *Tester) {
	t.add(next)
	t.Wall += next.Wall
	t.Delay, t.DelayKnown = t.Delay+next.Delay, next.DelayKnown
	t.Cores, t.Memory = next.Cores, max(t.Memory, next.Memory)
}

// add adds the use of another interval, or of another machine at the same time. Of the longest pauses it keeps the
// longer. Cores and Memory stay as they are.
func (t *Tester) add(other *Tester) {
	addTo(&t.Pauses, other.Pauses)
	t.GCPause += other.GCPause
	addTo(&t.LateExcused, other.LateExcused)
	if other.PauseMax > t.PauseMax {
		t.PauseMax, t.PauseAt = other.PauseMax, other.PauseAt
	}
	sum(
		[]*int64{&t.CPU, &t.MachineBusy, &t.MachineAll, &t.ClockForward, &t.ClockBackward},
		[]*int64{&other.CPU, &other.MachineBusy, &other.MachineAll, &other.ClockForward, &other.ClockBackward},
	)
}
