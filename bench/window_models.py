"""Small models of windows over space, with weights, drawn from a seed: what rules about padding, dilation and seams are for.

`write(folder, seed)` writes them as ONNX files and returns their paths. Layers are as published networks have them: a stage and a head of
DeepLab (dilations 2, 4 and 6, 12, 18), a stack of WaveNet (causal, dilations 1 to 64), normalization before depthwise convolutions,
sequences of a pointwise and a padded convolution (as re-parameterized branches have), transitions of DenseNet, up-sampling of U-Net, a
convolution before a mean over all places, and pools over an image in two parts.
"""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Model:
    """Layers one after another; each method returns the name of what it makes."""

    def __init__(self, seed):
        self.rng, self.nodes, self.weights = np.random.default_rng(seed), [], []

    def weight(self, *shape, scale=None, offset=0.0):
        fan = int(np.prod(shape[1:])) if len(shape) > 1 else 100
        value = offset + self.rng.standard_normal(shape) * (scale or np.sqrt(2 / fan))
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def conv(self, x, channels, outputs, kernel=1, dilation=1, pads=None, group=1, bias=True, axes=2, stride=1):
        pads = [dilation * (kernel // 2)] * (2 * axes) if pads is None else pads
        w = self.weight(outputs, channels // group, *[kernel] * axes)
        return self.add("Conv", x, w, *([self.weight(outputs)] if bias else []), kernel_shape=[kernel] * axes, dilations=[dilation] * axes,
                        strides=[stride] * axes, pads=pads, group=group)

    def split(self, x, parts, axis):
        sizes, names = f"w{len(self.weights)}", [f"v{len(self.nodes)}_{k}" for k in range(len(parts))]
        self.weights.append(numpy_helper.from_array(np.array(parts, np.int64), sizes))
        self.nodes.append(helper.make_node("Split", [x, sizes], names, axis=axis))
        return names

    def norm(self, x, channels):
        return self.add("BatchNormalization", x, self.weight(channels, scale=0.1, offset=1), self.weight(channels, scale=0.1),
                        self.weight(channels, scale=0.1), self.weight(channels, scale=0.01, offset=1))

    def save(self, path, shape, output):
        value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        graph = helper.make_graph(self.nodes, path.stem, [value("x", shape)], [value(output, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def dilated_stage(m):
    x = "x"
    for dilation in (2, 2, 4, 4):
        y = m.add("Relu", m.conv(x, 256, 64))
        y = m.add("Relu", m.conv(y, 64, 64, 3, dilation))
        x = m.add("Relu", m.add("Add", x, m.conv(y, 64, 256)))
    return x, [1, 256, 56, 56]


def deeplab_head(m):
    branches = [m.add("Relu", m.conv("x", 256, 64))] + [m.add("Relu", m.conv("x", 256, 64, 3, d)) for d in (6, 12, 18)]
    mean = m.add("Relu", m.conv(m.add("GlobalAveragePool", "x"), 256, 64))
    y = m.conv(m.add("Concat", *branches, axis=1), 256, 64)
    return m.add("Relu", m.add("Add", y, mean)), [1, 256, 48, 48]


def crowd_counting(m):
    x = "x"
    for channels, outputs in ((256, 256), (256, 256), (256, 128), (128, 64)):
        x = m.add("Relu", m.conv(x, channels, outputs, 3, 2))
    return m.conv(x, 64, 1), [1, 256, 64, 96]


def wavenet(m):
    x, skip = "x", None
    for dilation in (1, 2, 4, 8, 16, 32, 64):
        gates = [m.add(f, m.conv(x, 64, 64, 2, dilation, [dilation, 0], axes=1)) for f in ("Tanh", "Sigmoid")]
        y = m.add("Mul", *gates)
        own = m.conv(y, 64, 64, axes=1)
        skip = own if skip is None else m.add("Add", skip, own)
        x = m.add("Add", x, m.conv(y, 64, 64, axes=1))
    return m.add("Relu", skip), [1, 64, 4096]


def norm_before_depthwise(m):
    x = "x"
    for _ in range(4):
        y = m.add("Relu", m.conv(x, 32, 64))
        x = m.conv(m.conv(m.norm(y, 64), 64, 64, 3, group=64), 64, 32)
    return x, [1, 32, 112, 112]


def centered_image(m):
    x = m.add("Sub", "x", m.weight(1, 3, 1, 1))
    for channels, outputs in ((3, 16), (16, 16)):
        x = m.add("Relu", m.conv(x, channels, outputs, 3))
    return x, [1, 3, 224, 224]


def pointwise_in_front(m):
    x = "x"
    for _ in range(3):
        x = m.add("Relu", m.conv(m.conv(x, 64, 64), 64, 64, 3))
    return x, [1, 64, 56, 56]


def transitions(m):
    x, channels = "x", 128
    for _ in range(3):
        x = m.conv(m.add("Relu", m.norm(x, channels)), channels, channels // 2, bias=False)
        x = m.conv(m.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), channels // 2, channels, 3)
    return x, [1, 128, 64, 64]


def up_sampling(m):
    x, channels = "x", 128
    for _ in range(3):
        w = m.weight(channels, channels // 2, 2, 2)
        x = m.add("ConvTranspose", x, w, m.weight(channels // 2), kernel_shape=[2, 2], strides=[2, 2])
        channels //= 2
        x = m.add("Relu", m.conv(x, channels, channels, 3))
    return x, [1, 128, 32, 32]


def mean_of_conv(m):
    y = m.add("Relu", m.conv("x", 128, 128, 3))
    return m.add("GlobalAveragePool", m.conv(y, 128, 256, 3, bias=False)), [1, 128, 28, 28]


def pooled_patches(m):
    """An image computed in two parts, as where memory is scarce."""
    x = "x"
    for _ in range(3):
        parts = m.split(x, [28, 28], axis=2)
        x = m.add("Relu", m.add("Concat", *[m.add("MaxPool", p, kernel_shape=[3, 3], pads=[1, 1, 1, 1]) for p in parts], axis=2))
    return x, [1, 64, 56, 56]


MODELS = [dilated_stage, deeplab_head, crowd_counting, wavenet, norm_before_depthwise, centered_image, pointwise_in_front, transitions, up_sampling, mean_of_conv,
          pooled_patches]


def write(folder, seed):
    paths = []
    for k, make in enumerate(MODELS):
        m = Model(seed + k)
        output, shape = make(m)
        paths.append(pathlib.Path(folder) / f"{make.__name__}.onnx")
        m.save(paths[-1], shape, output)
    return paths
