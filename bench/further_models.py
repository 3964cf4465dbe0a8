"""Models for torch_turns.py beside torchvision's classifiers: bench/further_models.py:NAME. Weights are drawn. What is not written here is torchvision's or transformers'.

Each function takes the batch, and gives a module and its one input.
"""
import torch
from torch import nn
from torch.nn import functional as F


class First(nn.Module):
    """A model with settings of its call, of whose results one is kept."""

    def __init__(self, model, pick, **settings):
        super().__init__()
        self.model, self.pick, self.settings = model, pick, settings

    def forward(self, x):
        return self.pick(self.model(x, **self.settings))


def images(batch, side=224):
    return torch.randn(batch, 3, side, side)


def with_statistics(model, x):
    """As after training: normalization by what its inputs have."""
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
            module.momentum = 1.0
            nn.init.uniform_(module.weight, 0.8, 1.2), nn.init.uniform_(module.bias, -0.1, 0.1)
    with torch.no_grad():
        model.train()(torch.cat([x, torch.randn_like(x)]))
    return model.eval(), x


def deeplabv3_mobilenet(batch):
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

    return with_statistics(First(deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None), lambda r: r["out"]), images(batch, 320))


def fcn_resnet50(batch):
    from torchvision.models.segmentation import fcn_resnet50 as make

    return with_statistics(First(make(weights=None, weights_backbone=None), lambda r: r["out"]), images(batch, 256))


def r3d_18(batch):
    from torchvision.models.video import r3d_18 as make

    return with_statistics(make(weights=None), torch.randn(batch, 3, 16, 112, 112))


def r2plus1d_18(batch):
    from torchvision.models.video import r2plus1d_18 as make

    return with_statistics(make(weights=None), torch.randn(batch, 3, 16, 112, 112))


def s3d(batch):
    from torchvision.models.video import s3d as make

    return with_statistics(make(weights=None), torch.randn(batch, 3, 16, 224, 224))


def mvit_v2_s(batch):
    from torchvision.models.video import mvit_v2_s as make

    return make(weights=None), torch.randn(batch, 3, 16, 224, 224)


class Causal(nn.Module):
    """A layer of GPT-2's kind."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.register_buffer("seen", torch.ones(length, length, dtype=torch.bool).tril())

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).split(width, 2))
        scores = torch.where(self.seen, q @ k.transpose(2, 3) / (width // self.heads) ** 0.5, -1e4)
        x = x + self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, width))
        return x + self.inner(self.second(x))


def gpt2(batch):
    layers = [Causal(768, 12, 128) for _ in range(12)]
    return nn.Sequential(nn.Embedding(50257, 768), *layers, nn.LayerNorm(768), nn.Linear(768, 50257, False)), torch.randint(0, 50257, (batch, 128))


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Rotary(nn.Module):
    """A layer of Llama's kind: heads of keys that serve several of queries, turned by their positions, and a gated SiLU."""

    def __init__(self, width, heads, key_heads, inner, length):
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, width // heads
        self.first, self.second = RootMeanSquare(width), RootMeanSquare(width)
        self.q, self.k, self.v = nn.Linear(width, width, False), nn.Linear(width, key_heads * self.size, False), nn.Linear(width, key_heads * self.size, False)
        self.o, self.gate, self.up, self.down = nn.Linear(width, width, False), nn.Linear(width, inner, False), nn.Linear(width, inner, False), nn.Linear(inner, width, False)
        angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, self.size, 2) / self.size)[None]
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1)), self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))
        self.register_buffer("mask", torch.full((length, length), -1e4).triu(1))

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x):
        n, length, _ = x.shape
        y = self.first(x)
        q, k, v = (m(y).view(n, length, -1, self.size).transpose(1, 2) for m in (self.q, self.k, self.v))
        k, v = (t.repeat_interleave(self.heads // self.key_heads, 1) for t in (self.turn(k), v))
        scores = self.turn(q) @ k.transpose(2, 3) / self.size**0.5 + self.mask
        x = x + self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, -1))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def llama(batch):
    layers = [Rotary(1024, 16, 4, 2816, 128) for _ in range(8)]
    return nn.Sequential(nn.Embedding(8000, 1024), *layers, RootMeanSquare(1024), nn.Linear(1024, 8000, False)), torch.randint(0, 8000, (batch, 128))


def whisper_encoder(batch):
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, attn_implementation="eager")
    return First(WhisperModel(config).encoder, lambda r: r.last_hidden_state), torch.randn(batch, 80, 3000)


def wav2vec2(batch):
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    return First(Wav2Vec2Model(Wav2Vec2Config(num_hidden_layers=6, attn_implementation="eager")), lambda r: r.last_hidden_state), torch.randn(batch, 16000)


def segformer(batch):
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return First(SegformerForSemanticSegmentation(SegformerConfig()), lambda r: r.logits), images(batch, 512)


class Residual(nn.Module):
    def __init__(self, given, made):
        super().__init__()
        self.body = nn.Sequential(nn.GroupNorm(32, given), nn.SiLU(), nn.Conv2d(given, made, 3, padding=1), nn.GroupNorm(32, made), nn.SiLU(), nn.Conv2d(made, made, 3, padding=1))
        self.past = nn.Conv2d(given, made, 1) if given != made else nn.Identity()

    def forward(self, x):
        return self.past(x) + self.body(x)


class Attends(nn.Module):
    def __init__(self, width, heads=8):
        super().__init__()
        self.norm, self.qkv, self.out, self.heads = nn.GroupNorm(32, width), nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x).flatten(2).transpose(1, 2)).view(n, h * w, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, h * w, c)
        return x + self.out(y).transpose(1, 2).view(n, c, h, w)


class Diffusion(nn.Module):
    """A U-Net of Stable Diffusion's kind at one step of time."""

    def __init__(self, widths=(128, 256, 512)):
        super().__init__()
        self.first = nn.Conv2d(4, widths[0], 3, padding=1)
        self.down = nn.ModuleList(nn.Sequential(Residual(widths[max(0, i - 1)], w), Attends(w) if i else nn.Identity()) for i, w in enumerate(widths))
        self.pool = nn.ModuleList(nn.Conv2d(w, w, 3, 2, 1) for w in widths[:-1])
        self.middle = nn.Sequential(Residual(widths[-1], widths[-1]), Attends(widths[-1]), Residual(widths[-1], widths[-1]))
        self.rise = nn.ModuleList(nn.Conv2d(widths[i + 1], widths[i], 3, padding=1) for i in range(len(widths) - 1))
        self.up = nn.ModuleList(Residual(2 * w, w) for w in widths)
        self.last = nn.Sequential(nn.GroupNorm(32, widths[0]), nn.SiLU(), nn.Conv2d(widths[0], 4, 3, padding=1))

    def forward(self, x):
        x, kept = self.first(x), []
        for i, block in enumerate(self.down):
            x = block(x)
            kept.append(x)
            if i + 1 < len(self.down):
                x = self.pool[i](x)
        x = self.middle(x)
        for i in reversed(range(len(self.up))):
            x = self.up[i](torch.cat([x, kept[i]], 1))
            if i:
                x = self.rise[i - 1](F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.last(x)


def diffusion(batch):
    return Diffusion(), torch.randn(batch, 4, 64, 64)


class Upscaler(nn.Module):
    """EDSR's kind: residual blocks without normalization, then pixels out of channels."""

    def __init__(self, width=64, blocks=8):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)) for _ in range(blocks))
        self.last = nn.Sequential(nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x):
        x = first = self.first(x)
        for block in self.body:
            x = x + 0.1 * block(x)
        return self.last(x + first)


def upscaler(batch):
    return Upscaler(), images(batch, 160)


def vocoder(batch):
    """HiFi-GAN's kind: transposed convolutions of a line, and dilated ones with residuals."""

    class Dilated(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.parts = nn.ModuleList(nn.Sequential(nn.LeakyReLU(0.1), nn.Conv1d(width, width, 3, padding=d, dilation=d)) for d in (1, 3, 5))

        def forward(self, x):
            for part in self.parts:
                x = x + part(x)
            return x

    parts, width = [nn.Conv1d(80, 512, 7, padding=3)], 512
    for rate in (8, 8, 2, 2):
        parts += [nn.LeakyReLU(0.1), nn.ConvTranspose1d(width, width // 2, 2 * rate, rate, rate // 2), Dilated(width // 2)]
        width //= 2
    return nn.Sequential(*parts, nn.LeakyReLU(), nn.Conv1d(width, 1, 7, padding=3), nn.Tanh()), torch.randn(batch, 80, 64)
