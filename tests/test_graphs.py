"""A CUDA graph's kernels: steps of their own, with the ops of an eager recording beside it."""

import json

from build import forward, kernel, launch, memset, op, region, trace, write

from common.compare.graphs import eager_steps, has_graph
from common.compare.rows import rows
from common.read.observe import observe
from common.read.trace import read
from common.show.as_json import difference_json
from common.show.report import show_difference
from common.show.terminal import console

KERNELS = ("gemm", "gelu", "gemm", "add", "norm")
EAGER = (("linear addmm", "gemm", 5), ("gelu", "gelu", 2), ("linear addmm", "gemm", 5),
         ("add", "add", 1), ("layer_norm native_layer_norm", "norm", 3))  # fmt: skip


def replayed(start, names=KERNELS, correlation=1):
    """One graph launch of all the kernels, a memset before the last; inside one op."""
    events = [region(start, 90), op("run", start + 5, 60), launch(correlation, start + 10,
                                                                  "cudaGraphLaunch")]  # fmt: skip
    events += [kernel(correlation, start + 100 + 10 * n, 5, name) for n, name in enumerate(names)]
    return [*events, memset(correlation, start + 97 + 10 * (len(names) - 1), 1)]


def seen(folder, *events, name="graph.json"):
    return observe(read(write(folder, trace(*events), name)))


def test_every_kernel_of_a_graph_is_a_step_and_a_row(tmp_path):
    graph = seen(tmp_path, replayed(100), replayed(1000, correlation=2))
    assert [step.name for step in graph.steps if step.sort == "kernel"] == list(KERNELS)
    assert len(rows(graph.steps)) == len(KERNELS)  # the memset joins the kernel behind it
    assert graph.alike and graph.per_forward("kernel") == len(KERNELS)


def test_replays_that_differ_are_told(tmp_path):
    graph = seen(tmp_path, replayed(100), replayed(1000, KERNELS[:-1], correlation=2))
    assert not graph.alike and graph.per_forward("kernel") == [5, 4]


def test_an_eager_recording_gives_the_kernels_their_ops(tmp_path):
    graph = seen(tmp_path, replayed(100))
    eager = seen(tmp_path, forward(100, *EAGER), name="eager.json")
    assert has_graph(graph) and not has_graph(eager)
    ops = [same and same.path[-1] for same in eager_steps(graph, eager)]
    assert ops == ["aten::addmm", "aten::gelu", "aten::addmm", "aten::add", None,
                   "aten::native_layer_norm"]  # fmt: skip


def test_a_kernel_that_ran_eagerly_nowhere_has_no_op(tmp_path):
    graph = seen(tmp_path, replayed(100, ("gemm", "fused", "add")))
    eager = seen(tmp_path, forward(100, *EAGER), name="eager.json")
    by_name = {s.name: same for s, same in zip(graph.steps, eager_steps(graph, eager), strict=True)}
    assert by_name["fused"] is None and by_name["add"].path[-1] == "aten::add"


def test_both_are_shown_whichever_comes_first(tmp_path, capsys):
    graph = seen(tmp_path, replayed(100))
    eager = seen(tmp_path, forward(100, *EAGER), name="eager.json")
    for pair, title in (((graph, eager), "A's CUDA graph, with the ops of B"),
                        ((eager, graph), "B's CUDA graph, with the ops of A")):  # fmt: skip
        show_difference(console(), *pair)
        out = capsys.readouterr().out
        assert title in out and "layer_norm › native_layer_norm" in out
    found = json.loads(json.dumps(difference_json(eager, graph)))
    assert [step["eager_ops"] for step in found["b"]["steps"]][0] == ["aten::linear", "aten::addmm"]
    assert "eager_ops" not in found["a"]["steps"][0]


def test_two_eager_recordings_have_no_graph_to_show(tmp_path, capsys):
    eager = seen(tmp_path, forward(100, *EAGER), name="eager.json")
    show_difference(console(), eager, eager)
    assert "CUDA graph" not in capsys.readouterr().out


def test_annotations_of_nodes_are_read(tmp_path, capsys):
    """By the documented format of torch 2.15 (torch.cuda.graph_annotations): the node's id, and the
    annotation's keys among the args. Made by hand: no GPU at hand writes them."""
    events = replayed(100)
    for event in events:
        if event["cat"] == "kernel":
            event["args"] |= {"graph id": 3, "graph node id": 11, "name": "phase_A"}
    graph = seen(tmp_path, events)
    assert {s.gpu.region for s in graph.steps if s.sort == "kernel"} == {"phase_A"}
    show_difference(console(), graph, graph)
    from common.compare.compared import compare
    from common.show.report import show

    show(console(), compare(graph))
    assert "CUDA graph: phase_A" in capsys.readouterr().out


def test_a_name_in_args_is_no_annotation_without_a_node(tmp_path):
    event = kernel(1, 200, 5, "k", name_="x") | {}
    event["args"]["name"] = "not one"
    graph = seen(tmp_path, region(100, 50), launch(1, 110), event)
    assert graph.steps[0].gpu.region is None
