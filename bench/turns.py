"""Times models in turns, each in a process of its own: threads that one engine leaves spinning do not slow another, and what
slows the machine for a while slows all alike.

`Served(engine, path, seed, threads)` starts a process that loads a model (an ONNX file for `onnxruntime` and `openvino`, a
folder that `gopt optimize --emit` wrote and that is built for `emitted`), draws its inputs, and times runs when asked.
`in_turns(models, rounds)` fills the `times` of each: milliseconds, the least of a turn of runs (or the median), in alternating order.
`interval(values)` are the median and the ranks between which it lies 19 times of 20.
`show(row)` prints a row, `write_csv(path, rows)` writes all.
"""
import csv, math, statistics, subprocess, sys, time

TURN_MS = 60


def draw(shape, is_integer, rng):
    shape = [d if isinstance(d, int) and d > 0 else 2 for d in shape]
    return rng.integers(0, 2, shape) if is_integer else rng.standard_normal(shape)


def onnxruntime_runner(path, threads, rng):
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_, "tensor(double)": np.float64, "tensor(float16)": np.float16}
    feed = {i.name: draw(i.shape, "int" in i.type, rng).astype(types.get(i.type, np.float32)) for i in session.get_inputs()}
    return lambda: session.run(None, feed)


def openvino_runner(path, threads, rng):
    import openvino
    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({i: [d.get_length() if d.is_static else 2 for d in i.partial_shape] for i in model.inputs})
    # The answers are to be those of fp32, as the other engines' are; its own default takes bf16 where there are matrix tiles.
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    request.set_tensors({i: openvino.Tensor(draw(list(i.shape), i.element_type.is_integral(), rng).astype(i.element_type.to_dtype())) for i in compiled.inputs})
    return request.infer


def feed_of(emitted, rng):
    """Inputs of an emitted model, by name."""
    import numpy as np
    from check_models import NUMPY
    feed = {}
    for k, name in enumerate(emitted.names):
        info = emitted.lib.gopt_input(k)[0]
        kind = NUMPY[info.element]
        feed[name] = draw([info.dims[d] for d in range(info.rank)], not np.issubdtype(kind, np.floating), rng).astype(kind)
    return feed


def emitted_runner(path, threads, rng):
    from check_models import Emitted
    emitted = Emitted(path, threads)
    feed = feed_of(emitted, rng)
    return lambda: emitted.run(feed)


RUNNERS = {"onnxruntime": onnxruntime_runner, "openvino": openvino_runner, "emitted": emitted_runner}


def serve(engine, path, seed, threads):
    import pathlib
    import numpy as np
    run = RUNNERS[engine](pathlib.Path(path), threads, np.random.default_rng(seed))
    # One thread's time is its processor's, too: what else the machine does adds nothing to it. The lesser counts, since an
    # engine may have threads that wait and take time of theirs.
    clocks = (time.perf_counter, time.process_time) if threads == 1 else (time.perf_counter,)
    for _ in range(2):
        run()
    print("ready", flush=True)
    for line in sys.stdin:
        run()
        times = []
        for _ in range(int(line)):
            start = [clock() for clock in clocks]
            run()
            times.append(min(clock() - before for clock, before in zip(clocks, start)) * 1e3)
        print(min(times), statistics.median(times), flush=True)


class Served:
    """A turn is some `turn_ms` long; of its runs the median counts where it `is_typical`, else the least."""

    def __init__(self, engine, path, seed, threads, is_typical=False, turn_ms=TURN_MS):
        self.is_typical = is_typical
        command = [sys.executable, __file__, engine, str(path), str(seed), str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{engine} does not run {path}")
        self.runs, self.times = 1, []
        self.runs = max(1, min(50 * turn_ms // TURN_MS, int(turn_ms / max(self.turn(), 1e-3))))

    def turn(self):
        print(self.runs, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline().split()[self.is_typical])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def in_turns(models, rounds):
    for k in range(rounds):
        for model in models if k % 2 == 0 else reversed(models):
            model.times.append(model.turn())


def interval(values):
    ordered = sorted(values)
    rank = max(0, int((len(ordered) - 1.96 * math.sqrt(len(ordered))) / 2))
    return ordered[len(ordered) // 2], ordered[rank], ordered[-1 - rank]


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def show(row):
    print("  ".join(f"{k}={v:.3f}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()), flush=True)


def write_csv(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
