"""Models for torch_turns.py of parts that classifiers do not have (bench/unusual_models.py:NAME): recurrences, filters that are computed, sums over edges, tables, many outputs in one.

As in further_models.py each function takes the batch, and gives a module and its one input. Weights are drawn.
"""
import torch
from torch import nn
from torch.nn import functional as F

from further_models import Residual, RootMeanSquare, images, with_statistics


def conformer(batch):
    """Speech: halves of two linear layers, attention, and a depthwise convolution of a line behind a gate."""

    class Convolves(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.first, self.last = nn.LayerNorm(width), nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
            self.depthwise, self.batch = nn.Conv1d(width, width, 31, padding=15, groups=width), nn.BatchNorm1d(width)

        def forward(self, x):
            y = F.glu(self.first(self.norm(x).transpose(1, 2)), 1)
            return self.last(F.silu(self.batch(self.depthwise(y)))).transpose(1, 2)

    class Block(nn.Module):
        def __init__(self, width, heads=4):
            super().__init__()
            self.halves = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)) for _ in range(2))
            self.norm, self.qkv, self.o, self.heads = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), heads
            self.convolves, self.last = Convolves(width), nn.LayerNorm(width)

        def forward(self, x):
            x = x + 0.5 * self.halves[0](x)
            n, length, width = x.shape
            q, k, v = self.qkv(self.norm(x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, width))
            x = x + self.convolves(x)
            return self.last(x + 0.5 * self.halves[1](x))

    class Conformer(nn.Module):
        def __init__(self, width=256):
            super().__init__()
            self.halve = nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(), nn.Conv2d(width, width, 3, 2), nn.ReLU())
            self.linear, self.blocks = nn.Linear(width * 19, width), nn.Sequential(*(Block(width) for _ in range(4)))

        def forward(self, x):
            x = self.halve(x[:, None])
            return self.blocks(self.linear(x.transpose(1, 2).flatten(2)))

    return with_statistics(Conformer(), torch.randn(batch, 400, 80))


class Relative(nn.Module):
    """A layer of T5's kind: no scale, a bias by distance, root mean square, and a gated Gelu."""

    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(RootMeanSquare(width) for _ in range(2))
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(width, inner, False), nn.Linear(width, inner, False), nn.Linear(inner, width, False)

    def forward(self, x, bias):
        n, length, _ = x.shape
        y = self.norms[0](x)
        q, k, v = (m(y).view(n, length, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
        x = x + self.o(((0.1 * q @ k.transpose(2, 3) + bias).softmax(-1) @ v).transpose(1, 2).reshape(n, length, -1))
        y = self.norms[1](x)
        return x + self.down(F.gelu(self.gate(y), approximate="tanh") * self.up(y))


def t5_encoder(batch):
    class Encoder(nn.Module):
        def __init__(self, width=512, heads=8, length=128):
            super().__init__()
            self.table, self.far = nn.Embedding(8000, width), nn.Embedding(32, heads)
            self.layers, self.norm = nn.ModuleList(Relative(width, heads, 1024) for _ in range(6)), RootMeanSquare(width)
            far = torch.arange(length)[None] - torch.arange(length)[:, None]
            self.register_buffer("bucket", (far.abs().float().add(1).log2() * 2).long().clamp(max=15) + 16 * (far > 0))

        def forward(self, x):
            bias = self.far(self.bucket).permute(2, 0, 1)[None]
            x = self.table(x)
            for layer in self.layers:
                x = layer(x, bias)
            return self.norm(x)

    return Encoder(), torch.randint(0, 8000, (batch, 128))


class FirstResult(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)[0]


def lstm(batch):
    """Two layers in both directions over 64 steps."""
    return FirstResult(nn.LSTM(256, 256, 2, batch_first=True, bidirectional=True)), torch.randn(batch, 64, 256)


def gru(batch):
    """A tagger: words, one layer of a GRU, and a linear layer."""
    return nn.Sequential(nn.Embedding(5000, 200), FirstResult(nn.GRU(200, 400, batch_first=True)), nn.Linear(400, 50)), torch.randint(0, 5000, (batch, 40))


def vae_decoder(batch):
    """From a latent image of 32x32 to 256x256, as diffusion models end."""

    class Rises(nn.Module):
        def __init__(self, given, made):
            super().__init__()
            self.conv = nn.Conv2d(given, made, 3, padding=1)

        def forward(self, x):
            return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))

    parts = [nn.Conv2d(4, 512, 3, padding=1), Residual(512, 512), Residual(512, 512), Rises(512, 512), Residual(512, 256), Rises(256, 256), Residual(256, 128), Rises(128, 128), Residual(128, 128)]
    return nn.Sequential(*parts, nn.GroupNorm(32, 128), nn.SiLU(), nn.Conv2d(128, 3, 3, padding=1)), torch.randn(batch, 4, 32, 32)


def pointnet(batch):
    """Points in space: layers a point, the largest of all points, and layers of that beside each point."""

    def layers(*widths):
        return nn.Sequential(*(nn.Sequential(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU()) for a, b in zip(widths, widths[1:])))

    class Points(nn.Module):
        def __init__(self):
            super().__init__()
            self.each, self.all, self.parts = layers(3, 64, 64), layers(64, 128, 1024), layers(1088, 512, 256, 128)
            self.last = nn.Conv1d(128, 20, 1)

        def forward(self, x):
            each = self.each(x)
            whole = self.all(each).amax(2, keepdim=True).expand(-1, -1, each.shape[2])
            return self.last(self.parts(torch.cat([each, whole], 1)))

    return with_statistics(Points(), torch.randn(batch, 3, 2048))


def unet3d(batch):
    """Medical volumes: two 3x3x3 convolutions a level, InstanceNorm, LeakyReLU, and transposed 2x2x2."""

    def pair(given, made):
        return nn.Sequential(*(m for a in (given, made) for m in (nn.Conv3d(a, made, 3, padding=1), nn.InstanceNorm3d(made, affine=True), nn.LeakyReLU(0.01))))

    class Volume(nn.Module):
        def __init__(self, widths=(16, 32, 64, 128)):
            super().__init__()
            self.down = nn.ModuleList(pair(1 if i == 0 else widths[i - 1], w) for i, w in enumerate(widths))
            self.rise = nn.ModuleList(nn.ConvTranspose3d(widths[i + 1], w, 2, 2) for i, w in enumerate(widths[:-1]))
            self.up, self.last = nn.ModuleList(pair(2 * w, w) for w in widths[:-1]), nn.Conv3d(widths[0], 4, 1)

        def forward(self, x):
            kept = []
            for i, level in enumerate(self.down):
                x = level(F.max_pool3d(x, 2) if i else x)
                kept.append(x)
            for i in reversed(range(len(self.up))):
                x = self.up[i](torch.cat([self.rise[i](x), kept[i]], 1))
            return self.last(x)

    return Volume(), torch.randn(batch, 1, 48, 48, 48)


def retinanet(batch):
    """Detection: levels of ResNet-50 added from above, and two heads of convolutions on each of five."""
    from torchvision.models.detection import retinanet_resnet50_fpn

    made = retinanet_resnet50_fpn(weights=None, weights_backbone=None)

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone, self.head = made.backbone, made.head

        def forward(self, x):
            features = list(self.backbone(x).values())
            found = self.head(features)
            return torch.cat([found["cls_logits"], found["bbox_regression"]], 2)

    return with_statistics(Detector(), images(batch, 320))


def generator(batch):
    """StyleGAN's kind: the filters of each convolution are scaled by a layer's result, and scaled to length one."""

    class Modulated(nn.Module):
        def __init__(self, given, made, style):
            super().__init__()
            self.weight, self.scale, self.bias = nn.Parameter(torch.randn(made, given, 3, 3)), nn.Linear(style, given), nn.Parameter(torch.zeros(made))

        def forward(self, x, style):
            n, c, h, w = x.shape
            weight = self.weight[None] * (1 + self.scale(style))[:, None, :, None, None]
            weight = weight * torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
            y = F.conv2d(x.reshape(1, n * c, h, w), weight.flatten(0, 1), padding=1, groups=n)
            return F.leaky_relu(y.view(n, -1, h, w) + self.bias[:, None, None], 0.2)

    class Generator(nn.Module):
        def __init__(self, style=256, widths=(256, 256, 128, 128, 64)):
            super().__init__()
            self.mapping = nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(style, style), nn.LeakyReLU(0.2))))
            self.first = nn.Parameter(torch.randn(1, widths[0], 8, 8))
            self.layers = nn.ModuleList(Modulated(a, b, style) for a, b in zip(widths, widths[1:]))
            self.last = nn.Conv2d(widths[-1], 3, 1)

        def forward(self, z):
            style = self.mapping(z * torch.rsqrt(z.pow(2).mean(1, keepdim=True) + 1e-8))
            x = self.first.expand(z.shape[0], -1, -1, -1)
            for layer in self.layers:
                x = layer(F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False), style)
            return self.last(x)

    return Generator(), torch.randn(batch, 256)


def graph_network(batch):
    """A graph of 1,000 nodes and 5,000 edges: what comes along the edges is added up in each node."""

    class Message(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.own, self.other, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)

        def forward(self, x, source, target):
            sent = F.relu(self.other(x))[source]
            return x + F.relu(self.norm(self.own(x) + torch.zeros_like(x).scatter_add(0, target[:, None].expand(-1, x.shape[1]), sent)))

    class Network(nn.Module):
        def __init__(self, width=128):
            super().__init__()
            self.table, self.layers, self.last = nn.Embedding(500, width), nn.ModuleList(Message(width) for _ in range(4)), nn.Linear(width, 10)
            self.register_buffer("source", torch.randint(0, 1000, (5000,))), self.register_buffer("target", torch.randint(0, 1000, (5000,)))

        def forward(self, x):
            x = self.table(x)
            for layer in self.layers:
                x = layer(x, self.source, self.target)
            return self.last(x)

    return Network(), torch.randint(0, 500, (1000,))


def recommender(batch):
    """DLRM's kind, 64 requests at once for each of the batch: 26 tables, products of every two, and layers."""

    class Tables(nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(10000, width) for _ in range(26))
            self.top = nn.Sequential(nn.Linear(26 * 25 // 2, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1), nn.Sigmoid())
            self.register_buffer("rows", torch.tril_indices(26, 26, -1)[0]), self.register_buffer("columns", torch.tril_indices(26, 26, -1)[1])

        def forward(self, x):
            found = torch.stack([t(x[:, i]) for i, t in enumerate(self.tables)], 1)
            return self.top((found @ found.transpose(1, 2))[:, self.rows, self.columns])

    return Tables(), torch.randint(0, 10000, (64 * batch, 26))


def detector(batch):
    """YOLO's kind: halves that pass by, pools one behind the other, levels up and down, and boxes as means of softmax."""

    def conv(given, made, side=3, step=1):
        return nn.Sequential(nn.Conv2d(given, made, side, step, side // 2, bias=False), nn.BatchNorm2d(made), nn.SiLU())

    class Passes(nn.Module):
        def __init__(self, given, made, count, adds=True):
            super().__init__()
            self.half, self.adds = made // 2, adds
            self.first, self.last = conv(given, made, 1), conv((2 + count) * self.half, made, 1)
            self.blocks = nn.ModuleList(nn.Sequential(conv(self.half, self.half), conv(self.half, self.half)) for _ in range(count))

        def forward(self, x):
            parts = list(self.first(x).split(self.half, 1))
            for block in self.blocks:
                parts.append(block(parts[-1]) + parts[-1] if self.adds else block(parts[-1]))
            return self.last(torch.cat(parts, 1))

    class Pools(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.last = conv(width, width // 2, 1), conv(2 * width, width, 1)

        def forward(self, x):
            parts = [self.first(x)]
            for _ in range(3):
                parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
            return self.last(torch.cat(parts, 1))

    class Detector(nn.Module):
        def __init__(self, classes=80):
            super().__init__()
            self.stem = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), Passes(32, 32, 1), conv(32, 64, 3, 2), Passes(64, 64, 2))
            self.second, self.third = nn.Sequential(conv(64, 128, 3, 2), Passes(128, 128, 2)), nn.Sequential(conv(128, 256, 3, 2), Passes(256, 256, 1), Pools(256))
            self.up = nn.ModuleList([Passes(384, 128, 1, False), Passes(192, 64, 1, False)])
            self.down = nn.ModuleList([conv(64, 64, 3, 2), conv(128, 128, 3, 2)])
            self.joined = nn.ModuleList([Passes(192, 128, 1, False), Passes(384, 256, 1, False)])
            self.boxes = nn.ModuleList(nn.Sequential(conv(w, 64), conv(64, 64), nn.Conv2d(64, 64, 1)) for w in (64, 128, 256))
            self.classes = nn.ModuleList(nn.Sequential(conv(w, 80), conv(80, 80), nn.Conv2d(80, classes, 1)) for w in (64, 128, 256))

        def forward(self, x):
            a = self.stem(x)
            b = self.second(a)
            c = self.third(b)
            rise = lambda y: F.interpolate(y, scale_factor=2.0, mode="nearest")
            b = self.up[0](torch.cat([rise(c), b], 1))
            a = self.up[1](torch.cat([rise(b), a], 1))
            b = self.joined[0](torch.cat([self.down[0](a), b], 1))
            c = self.joined[1](torch.cat([self.down[1](b), c], 1))
            boxes, classes = (torch.cat([m(level).flatten(2) for m, level in zip(heads, (a, b, c))], 2) for heads in (self.boxes, self.classes))
            n, _, places = boxes.shape
            sides = (boxes.view(n, 4, 16, places).softmax(2) * torch.arange(16.0, device=x.device, dtype=x.dtype).view(1, 1, 16, 1)).sum(2)
            return torch.cat([sides, classes.sigmoid()], 1)

    return with_statistics(Detector(), images(batch, 320))
