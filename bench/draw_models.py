#!/usr/bin/env python3
"""Writes whole models of families that are easily forgotten, with drawn weights: a DCGAN's generator, a U-Net, a RegNet, a 3-D ResNet, a WaveNet, the
encoder of a Whisper, a ConvNeXt, an EfficientNet's blocks.

usage: draw_models.py OUT [--seed 0] [--only unet,...]      needs numpy, onnx
"""
import argparse, pathlib
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper


class Net:
    def __init__(self, seed, shape):
        self.rng, self.nodes, self.weights, self.n = np.random.default_rng(seed), [], [], 0
        self.inputs, self.x, self.shape = [h.make_tensor_value_info("input", T.FLOAT, shape)], "input", list(shape)

    def weight(self, shape, scale=None):
        self.n += 1
        a = self.rng.standard_normal(shape) * (scale if scale is not None else 1 / np.sqrt(max(1, np.prod(shape[1:]))))
        self.weights.append(numpy_helper.from_array(np.asarray(a, np.float32), f"w{self.n}"))
        return f"w{self.n}"

    def number(self, values):
        self.n += 1
        self.weights.append(numpy_helper.from_array(np.asarray(values), f"c{self.n}"))
        return f"c{self.n}"

    def op(self, kind, *inputs, **attributes):
        self.n += 1
        self.nodes.append(h.make_node(kind, list(inputs), [f"t{self.n}"], f"n{self.n}", **attributes))
        self.x = f"t{self.n}"
        return self.x

    def conv(self, x, cin, cout, k, stride=1, groups=1, axes=2, pads=None, dilation=1, bias=True):
        p = dilation * (k // 2) if pads is None else pads
        ins = [x, self.weight([cout, cin // groups] + [k] * axes)] + ([self.weight([cout], 0.1)] if bias else [])
        before, after = (p, p) if np.isscalar(p) else p
        return self.op("Conv", *ins, kernel_shape=[k] * axes, strides=[stride] * axes, dilations=[dilation] * axes,
                       pads=[before] * axes + [after] * axes, group=groups)

    def up(self, x, cin, cout, k, stride, pad=0):
        return self.op("ConvTranspose", x, self.weight([cin, cout, k, k], 1 / np.sqrt(cin * k * k / stride ** 2)), self.weight([cout], 0.1),
                       kernel_shape=[k, k], strides=[stride, stride], pads=[pad] * 4)

    def norm(self, x, c):
        one = self.number(np.ones(c, np.float32))
        return self.op("BatchNormalization", x, one, self.weight([c], 0.1), self.weight([c], 0.1), one)

    def dense(self, x, cin, cout):
        return self.op("Add", self.op("MatMul", x, self.weight([cin, cout], 1 / np.sqrt(cin))), self.weight([cout], 0.1))

    def save(self, path):
        g = h.make_graph(self.nodes, path.stem, self.inputs, [h.make_tensor_value_info(self.x, T.FLOAT, None)], self.weights)
        m = h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(m), path)


def dcgan(seed):
    n = Net(seed, [1, 100, 1, 1])
    x, c = n.up(n.x, 100, 512, 4, 1), 512
    for out in (256, 128, 64):
        x = n.op("Relu", n.norm(x, c))
        x, c = n.up(x, c, out, 4, 2, 1), out
    n.op("Tanh", n.up(n.op("Relu", n.norm(x, c)), c, 3, 4, 2, 1))
    return n


def unet(seed):
    n = Net(seed, [1, 3, 192, 192])
    double = lambda x, i, o: n.op("Relu", n.conv(n.op("Relu", n.conv(x, i, o, 3)), o, o, 3))
    x, c, skips = n.x, 3, []
    for out in (32, 64, 128):
        x, c = double(x, c, out), out
        skips.append((x, out))
        x = n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x, c = double(x, c, 256), 256
    for skip, out in reversed(skips):
        x = n.op("Concat", n.up(x, c, out, 2, 2), skip, axis=1)
        x, c = double(x, 2 * out, out), out
    n.op("Sigmoid", n.conv(x, c, 1, 1))
    return n


def regnet(seed):
    n = Net(seed, [1, 3, 224, 224])
    x, c = n.op("Relu", n.conv(n.x, 3, 32, 3, 2)), 32
    for width, depth in ((24, 1), (56, 1), (152, 4), (368, 7)):
        for block in range(depth):
            stride = 2 if block == 0 else 1
            y = n.op("Relu", n.conv(x, c, width, 1))
            y = n.op("Relu", n.conv(y, width, width, 3, stride, width // 8))
            y = n.conv(y, width, width, 1)
            x = n.op("Relu", n.op("Add", y, n.conv(x, c, width, 1, stride) if block == 0 else x))
            c = width
    n.dense(n.op("Flatten", n.op("GlobalAveragePool", x)), c, 1000)
    return n


def resnet3d(seed):
    n = Net(seed, [1, 3, 8, 56, 56])
    x, c = n.op("Relu", n.conv(n.x, 3, 32, 3, 1, axes=3)), 32
    for width in (32, 64, 128):
        y = n.op("Relu", n.conv(x, c, width, 3, 1 if width == c else 2, axes=3))
        y = n.conv(y, width, width, 3, axes=3)
        x = n.op("Relu", n.op("Add", y, x if width == c else n.conv(x, c, width, 1, 2, axes=3)))
        c = width
    n.dense(n.op("Flatten", n.op("GlobalAveragePool", x)), c, 400)
    return n


def wavenet(seed):
    n = Net(seed, [1, 64, 2048])
    x, skips = n.x, None
    for layer in range(10):
        d = 2 ** (layer % 10)
        a = n.op("Tanh", n.conv(x, 64, 64, 2, axes=1, pads=(d, 0), dilation=d))
        b = n.op("Sigmoid", n.conv(x, 64, 64, 2, axes=1, pads=(d, 0), dilation=d))
        z = n.op("Mul", a, b)
        s = n.conv(z, 64, 128, 1, axes=1)
        skips = s if skips is None else n.op("Add", skips, s)
        x = n.op("Add", n.conv(z, 64, 64, 1, axes=1), x)
    n.conv(n.op("Relu", n.conv(n.op("Relu", skips), 128, 128, 1, axes=1)), 128, 256, 1, axes=1)
    return n


def attention(n, x, tokens, width, heads):
    split = lambda y: n.op("Transpose", n.op("Reshape", y, n.number(np.array([1, tokens, heads, width // heads]))), perm=[0, 2, 1, 3])
    q, k, v = (split(n.dense(x, width, width)) for _ in range(3))
    s = n.op("Mul", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), n.number(np.float32((width // heads) ** -0.5)))
    y = n.op("Transpose", n.op("MatMul", n.op("Softmax", s, axis=-1), v), perm=[0, 2, 1, 3])
    return n.dense(n.op("Reshape", y, n.number(np.array([1, tokens, width]))), width, width)


def layer_norm(n, x, width):
    return n.op("LayerNormalization", x, n.number(np.ones(width, np.float32)), n.weight([width], 0.1), axis=-1)


def gelu(n, x):
    e = n.op("Erf", n.op("Div", x, n.number(np.float32(2 ** 0.5))))
    return n.op("Mul", n.op("Mul", x, n.op("Add", e, n.number(np.float32(1)))), n.number(np.float32(0.5)))


def whisper(seed):
    n = Net(seed, [1, 80, 1000])
    x = gelu(n, n.conv(n.x, 80, 384, 3, axes=1))
    x = gelu(n, n.conv(x, 384, 384, 3, 2, axes=1))
    x = n.op("Add", n.op("Transpose", x, perm=[0, 2, 1]), n.weight([500, 384], 0.1))
    for _ in range(2):
        x = n.op("Add", x, attention(n, layer_norm(n, x, 384), 500, 384, 6))
        x = n.op("Add", x, n.dense(gelu(n, n.dense(layer_norm(n, x, 384), 384, 1536)), 1536, 384))
    layer_norm(n, x, 384)
    return n


def convnext(seed):
    n = Net(seed, [1, 3, 224, 224])
    x, c = n.conv(n.x, 3, 96, 4, 4, pads=0), 96
    for width in (96, 192, 384):
        if width != c:
            y = n.op("Transpose", layer_norm(n, n.op("Transpose", x, perm=[0, 2, 3, 1]), c), perm=[0, 3, 1, 2])
            x, c = n.conv(y, c, width, 2, 2, pads=0), width
        for _ in range(2):
            y = n.op("Transpose", n.conv(x, c, c, 7, groups=c), perm=[0, 2, 3, 1])
            y = n.dense(gelu(n, n.dense(layer_norm(n, y, c), c, 4 * c)), 4 * c, c)
            x = n.op("Add", x, n.op("Transpose", n.op("Mul", y, n.weight([c], 0.1)), perm=[0, 3, 1, 2]))
    n.dense(n.op("Flatten", n.op("GlobalAveragePool", x)), c, 1000)
    return n


def efficientnet(seed):
    n = Net(seed, [1, 3, 224, 224])
    swish = lambda y: n.op("Mul", y, n.op("Sigmoid", y))
    x, c = swish(n.conv(n.x, 3, 32, 3, 2)), 32
    for width, k, stride, expand in ((16, 3, 1, 1), (24, 3, 2, 6), (24, 3, 1, 6), (40, 5, 2, 6), (40, 5, 1, 6), (80, 3, 2, 6), (112, 5, 1, 6), (192, 5, 2, 6)):
        inner = c * expand
        y = swish(n.conv(x, c, inner, 1)) if expand > 1 else x
        y = swish(n.conv(y, inner, inner, k, stride, inner))
        s = n.op("ReduceMean", y, axes=[2, 3], keepdims=1)
        s = n.op("Sigmoid", n.conv(swish(n.conv(s, inner, max(1, c // 4), 1)), max(1, c // 4), inner, 1))
        y = n.conv(n.op("Mul", y, s), inner, width, 1)
        x, c = (n.op("Add", y, x) if width == c and stride == 1 else y), width
    n.dense(n.op("Flatten", n.op("GlobalAveragePool", swish(n.conv(x, c, 1280, 1)))), 1280, 1000)
    return n


FAMILIES = {f.__name__: f for f in (dcgan, unet, regnet, resnet3d, wavenet, whisper, convnext, efficientnet)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(FAMILIES))
    o = parser.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    for name in o.only.split(","):
        FAMILIES[name](o.seed).save(o.out / f"{name}.onnx")
        print(o.out / f"{name}.onnx")


if __name__ == "__main__":
    main()
