// Fused kernels, library kernels, views and layouts: small graphs as text, compared with the interpreter.
#include <gtest/gtest.h>

#include "batch.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  const char* text;
};

const Row kRows[] = {
    {"ElementwiseChain", "input x : f32[2,3,37]\na = Exp(x)\nb = Sigmoid(a)\nc = Sub(b, x)\nd = Tanh(c)\noutput y = d"},
    {"Broadcast", "input x : f32[4,1,9]\ninput z : f32[5,1]\na = Add(x, z)\nb = Mul(a, x)\noutput y = b"},
    {"LongVector", "input x : f32[100000]\na = Erf(x)\nb = Mul(a, x)\noutput y = b"},
    {"TwoUsers", "input x : f32[3,50]\na = Relu(x)\nb = Exp(a)\nc = Neg(a)\nd = Add(b, c)\noutput y = d\noutput z = b"},
    {"SoftmaxLast", "input x : f32[3,4,70]\ny = Softmax(x) {axis=-1}\noutput y = y"},
    {"SoftmaxMiddle", "input x : f32[3,40,7]\ny = Softmax(x) {axis=1}\noutput y = y"},
    // A row of constants alone, of the type of the others.
    {"SoftmaxOfPaddedRows", "input x : f32[2,3]\np = Pad(x) {pads=[1,0,0,0]}\ny = Softmax(p) {axis=-1}\noutput y = y"},
    {"SoftmaxOfWidePaddedRows",
     "input x : f32[2,70]\np = Pad(x) {pads=[0,0,2,0]}\nr = Relu(p)\ny = Softmax(r) {axis=-1}\noutput y = y"},
    {"LogSoftmaxOfPaddedRowsOfDoubles",
     "input x : f64[2,7]\np = Pad(x) {pads=[1,0,0,0], value=1e300}\ny = LogSoftmax(p) {axis=-1}\n"
     "output y = y"},
    {"SoftmaxFirst", "input x : f32[30,5]\ny = Softmax(x) {axis=0}\noutput y = y"},
    {"SoftmaxWide", "input x : f32[2,8,3000]\ny = Softmax(x) {axis=1}\noutput y = y"},
    {"SoftmaxOfLongColumns", "input x : f32[2,3,5000]\ny = Softmax(x) {axis=1}\noutput y = y"},
    {"SoftmaxOfLongRows",
     "input x : f32[2,5001]\ninput z : f32[2,5001]\na = Softmax(x) {axis=-1}\nb = Softmax(z) {axis=-1}\n"
     "c = Sub(a, b)\noutput y = c\noutput z = a"},
    {"LogSoftmaxMiddle", "input x : f32[2,7,130]\ny = LogSoftmax(x) {axis=1}\noutput y = y"},
    {"TransposeOfOddSides",
     "input x : f32[2,37,70]\ninput z : f32[3,9,5,33]\na = Transpose(x) {perm=[0,2,1]}\n"
     "b = Transpose(z) {perm=[3,0,2,1]}\nc = Transpose(z) {perm=[0,3,1,2]}\noutput y = a\noutput z = b\noutput u = c"},
    {"TransposeOfManyRows", "input x : f32[4000,96]\na = Transpose(x) {perm=[1,0]}\noutput y = a"},
    {"GatherByConstants",
     "input x : f32[3,9]\nconstant i = i64[4] {0, -1, 8, -9}\nconstant k = i64[3] {2, 5, 0}\n"
     "a = Gather(x, i) {axis=1}\nb = Gather(x, k) {axis=1}\noutput y = a\noutput z = b"},
    // A number has no type of its own: beside integers it is a float all the same.
    {"PowersOfNumbers",
     "input x : i64[5]\ninput z : f32[5]\ninput n : i32[5]\nconstant b = f32[] {2.5}\nconstant d = f64[] {0.1}\n"
     "constant h = f32[] {1.5}\na = Pow(b, x)\nc = Pow(d, z)\ne = Abs(n)\ng = Pow(e, h)\noutput y = a\noutput z = "
     "c\noutput u = g"},
    {"CastToDoubles",
     "input x : f32[2,9]\ninput h : f16[9]\nconstant c = f64[] {1e200}\nconstant d = f64[] {0.1}\na = Cast(x) {to=11}\n"
     "b = Mul(a, c)\ne = Cast(h) {to=11}\nf = Div(e, d)\ng = Floor(f)\nj = Softmax(a) {axis=1}\nk = Mul(j, c)\n"
     "output y = b\noutput z = g\noutput u = k"},
    {"ChoicesOfDoubles",
     "input x : f64[7]\ninput b : bool[7]\nconstant c = f64[] {1e200}\nconstant d = f64[] {123456789}\n"
     "a = Where(b, d, c)\ne = Where(b, c, d)\nf = Mul(e, x)\ng = IsNaN(x)\nh = Where(g, c, d)\n"
     "s = ReduceSum(h) {axes=[0], keepdims=0}\noutput y = a\noutput z = f\noutput u = s"},
    {"IntegersByFunctions",
     "input x : i64[3,4]\nconstant c = i64[] {3}\na = ReduceL2(x) {axes=[1], keepdims=0}\nb = Mul(a, c)\n"
     "d = Abs(x)\ne = Add(d, c)\nf = ReduceLogSum(e) {axes=[1], keepdims=0}\ng = Mul(f, c)\noutput y = b\noutput z = "
     "g"},
    {"FractionsOfIntegers",
     "input x : i32[3,4]\ninput z : i32[4,2]\ninput c : i32[3,2]\na = Gemm(x, z, c) {alpha=1.5, beta=0.5}\noutput y = "
     "a"},
    {"UnsignedOf64Bits",
     "input x : u8[9]\nconstant c = f64[] {7e16}\nconstant d = u64[] {9223372036854775807}\na = Cast(x) {to=11}\n"
     "b = Mul(a, c)\ne = Cast(b) {to=13}\nf = Cast(x) {to=13}\ng = Add(f, d)\nh = Cast(g) {to=16}\nk = Cast(h) {to=1}\n"
     "output y = e\noutput z = k"},
    // The sign of a zero shows in what is divided by it.
    {"QuotientsOfZeros",
     "input x : f32[40]\nconstant c = f32[] {-2}\nconstant d = f32[] {6}\na = Relu(x)\nb = Mul(a, c)\ne = Div(b, d)\n"
     "f = Reciprocal(e)\ng = Neg(f)\nh = Relu(g)\nk = Less(f, x)\noutput y = h\noutput z = k"},
    // What is a whole number is not a little less.
    {"WholeQuotients",
     "input x : i32[40]\nconstant c = f32[] {41}\nconstant d = f32[] {47}\na = Cast(x) {to=1}\nb = Mul(a, c)\n"
     "e = Div(b, c)\nf = Floor(e)\ng = Mul(a, d)\nh = Div(g, d)\nk = Equal(h, a)\noutput y = f\noutput z = k"},
    {"SoftmaxMasked",
     "input x : f32[2,3,8,8]\ninput m : f32[2,1,1,8]\na = Add(x, m)\ny = Softmax(a) {axis=-1}\nz = Mul(y, x)\noutput y "
     "= z"},
    {"LogSoftmax", "input x : f32[5,33]\ny = LogSoftmax(x) {axis=1}\noutput y = y"},
    {"LayerNorm",
     "input x : f32[2,5,64]\ninput r : f32[2,5,64]\ninput w1 : f32[64]\ninput w2 : f32[64]\na = Add(x, r)\n"
     "y = LayerNormalization(a, w1, w2) {axis=-1}\noutput y = y"},
    {"ReduceMiddle",
     "input x : f32[3,17,20]\ny = ReduceMean(x) {axes=[1], keepdims=0}\nz = ReduceMax(x) {axes=[0,2], "
     "keepdims=1}\noutput y = y\noutput z = z"},
    {"ReduceAll", "input x : f32[30,40]\na = Abs(x)\ny = ReduceSum(a) {keepdims=0}\noutput y = y"},
    {"ReduceThenMap",
     "input x : f32[6,300]\na = ReduceSumSquare(x) {axes=[1], keepdims=1}\nb = Sqrt(a)\nc = Div(x, b)\noutput y = c"},
    {"ProductsInOtherShapes",
     "input x : f32[24,20]\ninput z : f32[2,12,36]\ninput w1 : f32[20,36]\ninput w2 : f32[36]\ninput w3 : f32[36,16]\n"
     "input w4 : f32[16]\na = Gemm(x, w1, w2)\nb = Reshape(a) {shape=[2,12,36]}\nc = Add(z, b)\nd = Gelu(c)\n"
     "e = MatMul(d, w3)\nf = Reshape(e) {shape=[24,1,16]}\ng = Add(f, w4)\nh = Relu(g)\noutput y = c\noutput u = h"},
    {"TransposeReshape",
     "input x : f32[1,6,40]\na = Reshape(x) {shape=[1,6,4,10]}\nb = Transpose(a) {perm=[0,2,1,3]}\nc = Relu(b)\n"
     "d = Transpose(c) {perm=[0,2,1,3]}\ne = Reshape(d) {shape=[6,40]}\noutput y = e"},
    {"ConcatGenerated",
     "input x : f32[4,7]\ninput z : f32[4,9]\na = Exp(x)\nb = Neg(z)\nc = Concat(a, b, x) {axis=1}\nd = "
     "Relu(c)\noutput y = d"},
    {"SplitUses",
     "input x : f32[4,12]\na, b, c = Split(x) {axis=1, split=[2,4,6]}\nd = Exp(b)\ne = Tanh(c)\noutput p = a\noutput q "
     "= d\noutput r = e"},
    {"SliceViews",
     "input x : f32[8,10]\na = Relu(x)\nb = Slice(a) {starts=[2], ends=[6], axes=[0], steps=[1]}\nc = Slice(a) "
     "{starts=[1], ends=[9], axes=[1], steps=[2]}\n"
     "d = Reshape(b) {shape=[40]}\noutput y = d\noutput z = c"},
    {"GatherRows", "input x : f32[3,16]\ninput i : i64[2,5]\ny = Gather(x, i) {axis=0}\nz = Mul(y, y)\noutput y = z"},
    {"GatherThenEmbed",
     "input w1 : f32[3,24]\ninput w2 : f32[2,24]\ninput i : i64[1,7]\na = Gather(w1, i) {axis=0}\nb = Slice(w2) "
     "{starts=[0], ends=[1], axes=[0]}\n"
     "c = Add(a, b)\noutput y = c"},
    {"WhereMask",
     "input m : bool[3,1,5]\ninput x : f32[3,4,5]\ninput k : i64[3,1,5]\nconstant c = f32[] {-100}\ny = Where(m, x, "
     "c)\nz = Cast(k) {to=1}\nu = Mul(y, z)\noutput y = u"},
    {"IntegerArithmetic",
     "input x : i64[20]\ninput z : i64[20]\na = Add(x, z)\nb = Mul(a, x)\nc = Equal(a, z)\nd = Cast(b) {to=6}\noutput "
     "y = b\noutput e = c\noutput f = d"},
    {"PadModes",
     "input x : f32[1,2,5,6]\na = Pad(x) {pads=[0,0,1,2,0,0,3,1], value=0.5}\nb = Pad(x) {mode=\"reflect\", "
     "pads=[0,0,1,2,0,0,2,1]}\noutput y = a\noutput z = b"},
    {"DoublePrecision", "input x : f64[3,8]\na = Exp(x)\ny = Softmax(a) {axis=1}\noutput y = y"},
    {"MatMulBias",
     "input x : f32[6,20]\ninput w1 : f32[20,33]\ninput w2 : f32[33]\na = MatMul(x, w1)\nb = Add(a, w2)\nc = "
     "Gelu(b)\noutput y = c"},
    {"MatMulResidual",
     "input x : f32[2,5,24]\ninput r : f32[2,5,24]\ninput w1 : f32[24,24]\ninput w2 : f32[24]\na = MatMul(x, w1)\nb = "
     "Add(w2, a)\n"
     "c = Add(r, b)\nd = Exp(c)\noutput y = d"},
    {"MatMulBatched", "input x : f32[2,3,5,8]\ninput z : f32[2,3,8,6]\ny = MatMul(x, z)\noutput y = y"},
    {"MatMulBroadcast", "input x : f32[2,1,5,8]\ninput z : f32[3,8,6]\ny = MatMul(x, z)\nu = Relu(y)\noutput y = u"},
    {"MatMulOneRow",
     "input x : f32[1,32]\ninput w1 : f32[32,48]\ninput w2 : f32[32,48]\na = MatMul(x, w1)\nb = MatMul(x, w2)\nc = "
     "Sigmoid(a)\nd = Mul(c, b)\noutput y = d"},
    {"MatMulOneRowLong", "input x : f32[1,200]\ninput w1 : f32[200,900]\na = MatMul(x, w1)\ny = Tanh(a)\noutput y = y"},
    {"MatMulVectors", "input x : f32[12]\ninput z : f32[12,5]\ny = MatMul(x, z)\noutput y = y"},
    {"GemmForms",
     "input x : f32[7,9]\ninput w1 : f32[9,7]\ninput w2 : f32[11,9]\ninput c : f32[7,11]\na = Gemm(x, w2, c) "
     "{alpha=0.5, transB=1}\n"
     "b = Gemm(w1, w2) {transA=1, transB=1}\nd = Gemm(x, w2, c) {alpha=2, beta=3, transB=1}\noutput y = a\noutput z = "
     "b\noutput u = d"},
    {"GemmOneRow",
     "input x : f32[1,90]\ninput w1 : f32[40,90]\ninput w2 : f32[40]\na = Gemm(x, w1, w2) {transB=1}\ny = "
     "Relu(a)\noutput y = y"},
    {"ConvRelu",
     "input x : f32[1,3,20,20]\ninput w1 : f32[32,3,3,3]\ninput w2 : f32[32]\na = Conv(x, w1, w2) {pads=[1,1,1,1], "
     "strides=[2,2]}\ny = Relu(a)\noutput y = y"},
    {"ConvWinograd",
     "input x : f32[1,16,18,18]\ninput w0 : f32[32,16,1,1]\ninput w1 : f32[32,32,3,3]\ninput w2 : f32[32]\na = Conv(x, "
     "w0)\n"
     "b = Conv(a, w1, w2) {pads=[1,1,1,1]}\ny = Relu(b)\noutput y = y"},
    {"ConvOddChannels",
     "input x : f32[2,5,9,9]\ninput w1 : f32[7,5,3,3]\ninput w2 : f32[21,7,1,1]\na = Conv(x, w1) {pads=[1,1,1,1]}\nb = "
     "Sigmoid(a)\nc = Conv(b, w2)\n"
     "d = Exp(c)\noutput y = d\noutput z = c"},
    {"ConvResidual",
     "input x : f32[1,32,8,8]\ninput w1 : f32[32,32,3,3]\ninput w2 : f32[32]\ninput w3 : f32[32,32,1,1]\na = Conv(x, "
     "w3)\nb = Relu(a)\n"
     "c = Conv(b, w1, w2) {pads=[1,1,1,1]}\nd = Add(c, b)\ne = Relu(d)\noutput y = e"},
    {"ConvResidualKept",
     "input x : f32[1,32,8,8]\ninput w1 : f32[32,32,3,3]\ninput w3 : f32[32,32,1,1]\na = Conv(x, w3)\nb = Conv(a, w1) "
     "{pads=[1,1,1,1]}\n"
     "c = Add(a, b)\nd = Add(c, a)\ne = Conv(d, w3)\noutput y = e"},
    {"ConvBatchNorm",
     "input x : f32[1,16,7,7]\ninput w1 : f32[40,16,3,3]\ninput w2 : f32[40]\ninput w3 : f32[40]\ninput w4 : "
     "f32[40]\ninput v : f32[40]\n"
     "a = Conv(x, w1)\nb = Mul(v, v)\nc = BatchNormalization(a, w2, w3, w4, b)\ny = Relu(c)\noutput y = y"},
    {"ConvDepthwise",
     "input x : f32[1,24,10,10]\ninput w0 : f32[24,24,1,1]\ninput w1 : f32[24,1,3,3]\na = Conv(x, w0)\nb = Clip(a) "
     "{min=0, max=6}\n"
     "c = Conv(b, w1) {group=24, pads=[1,1,1,1], strides=[2,2]}\nd = Clip(c) {min=0, max=6}\noutput y = d"},
    {"ConvGrouped",
     "input x : f32[1,32,6,6]\ninput w0 : f32[32,32,1,1]\ninput w1 : f32[32,4,3,3]\na = Conv(x, w0)\ny = Conv(a, w1) "
     "{group=8, pads=[1,1,1,1]}\noutput y = y"},
    {"ConvGroupedOdd",
     "input x : f32[1,12,6,6]\ninput w1 : f32[18,4,3,3]\ny = Conv(x, w1) {group=3, pads=[1,0,0,1]}\noutput y = y"},
    {"ConvDilated",
     "input x : f32[1,16,12,12]\ninput w1 : f32[16,16,3,3]\ny = Conv(x, w1) {dilations=[2,2], pads=[2,2,2,2]}\noutput "
     "y = y"},
    {"ConvRectangular",
     "input x : f32[1,16,12,12]\ninput w1 : f32[16,16,1,7]\ny = Conv(x, w1) {pads=[0,3,0,3]}\noutput y = y"},
    {"Conv1d",
     "input x : f32[2,3,30]\ninput w1 : f32[4,3,5]\ninput w2 : f32[4]\ny = Conv(x, w1, w2) {pads=[2,2]}\noutput y = y"},
    {"ConvOfActivations",
     "input x : f32[1,3,8,8]\ninput z : f32[4,3,3,3]\ny = Conv(x, z) {pads=[1,1,1,1]}\noutput y = y"},
    {"ConvTranspose2d",
     "input x : f32[1,4,6,6]\ninput w1 : f32[4,5,3,3]\ny = ConvTranspose(x, w1) {strides=[2,2], "
     "pads=[1,1,1,1]}\noutput y = y"},
    {"PoolsOnBlocks",
     "input x : f32[1,3,21,21]\ninput w1 : f32[20,3,3,3]\na = Conv(x, w1)\nb = MaxPool(a) {kernel_shape=[3,3], "
     "strides=[2,2], pads=[1,1,1,1]}\n"
     "c = AveragePool(b) {kernel_shape=[3,3], pads=[1,1,1,1]}\nd = AveragePool(b) {kernel_shape=[2,2], strides=[2,2], "
     "ceil_mode=1}\n"
     "e = AveragePool(b) {kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1}\noutput y = c\noutput z = d\noutput "
     "u = e"},
    {"GlobalPoolFlatten",
     "input x : f32[1,3,9,9]\ninput w1 : f32[24,3,3,3]\na = Conv(x, w1)\nb = GlobalAveragePool(a)\nc = Flatten(b) "
     "{axis=1}\noutput y = c"},
    {"GlobalPoolGemm",
     "input x : f32[1,3,9,9]\ninput w1 : f32[32,3,3,3]\ninput w2 : f32[10,32]\na = Conv(x, w1)\nr = Relu(a)\nb = "
     "ReduceMean(r) {axes=[2,3], keepdims=1}\n"
     "c = Reshape(b) {shape=[1,32]}\nd = Gemm(c, w2) {transB=1}\noutput y = d"},
    {"SqueezeExcite",
     "input x : f32[1,32,6,6]\ninput w1 : f32[32,32,3,3]\ninput w2 : f32[8,32,1,1]\ninput w3 : f32[32,8,1,1]\na = "
     "Conv(x, w1) {pads=[1,1,1,1]}\n"
     "b = GlobalAveragePool(a)\nc = Conv(b, w2)\nd = Relu(c)\ne = Conv(d, w3)\nf = Sigmoid(e)\ng = Mul(a, f)\nh = "
     "Conv(g, w1)\noutput y = h"},
    {"ConcatInPlace",
     "input x : f32[1,16,9,9]\ninput w1 : f32[16,16,1,1]\ninput w2 : f32[32,16,3,3]\ninput w3 : f32[24,48,1,1]\na = "
     "Conv(x, w1)\nb = Relu(a)\nc = Conv(b, w1)\n"
     "d = Conv(b, w2) {pads=[1,1,1,1]}\ne = Concat(c, d) {axis=1}\nf = Conv(e, w3)\noutput y = f"},
    {"ConcatNested",
     "input x : f32[1,16,6,6]\ninput w1 : f32[16,16,1,1]\ninput w2 : f32[16,32,1,1]\ninput w3 : f32[16,48,1,1]\na = "
     "Conv(x, w1)\nb = Conv(a, w1)\n"
     "c = Concat(a, b) {axis=1}\nd = Conv(c, w2)\ne = Concat(a, b, d) {axis=1}\nf = Conv(e, w3)\ng = Relu(e)\noutput y "
     "= f\noutput z = g"},
    {"ConcatUnaligned",
     "input x : f32[1,16,6,6]\ninput w1 : f32[10,16,1,1]\ninput w2 : f32[20,16,1,1]\ninput w3 : f32[16,30,1,1]\na = "
     "Conv(x, w1)\nb = Conv(x, w2)\n"
     "c = Concat(a, b) {axis=1}\nd = Conv(c, w3)\noutput y = d"},
    {"ConcatBatch2",
     "input x : f32[2,16,6,6]\ninput w1 : f32[16,16,1,1]\ninput w3 : f32[16,32,1,1]\na = Conv(x, w1)\nb = Relu(a)\nc = "
     "Conv(b, w1)\nd = Concat(b, c) {axis=1}\n"
     "e = Conv(d, w3)\noutput y = e"},
    {"ChannelSplit",
     "input x : f32[1,16,6,6]\ninput w1 : f32[48,16,1,1]\ninput w2 : f32[16,16,3,3]\na = Conv(x, w1)\nb, c = Split(a) "
     "{axis=1, split=[32,16]}\n"
     "d = Conv(c, w2) {pads=[1,1,1,1]}\ne = Relu(b)\noutput y = d\noutput z = e"},
    {"PatchEmbedding",
     "input x : f32[1,3,32,32]\ninput w1 : f32[48,3,8,8]\ninput w2 : f32[48,48]\na = Conv(x, w1) {strides=[8,8]}\nb = "
     "Reshape(a) {shape=[1,48,16]}\n"
     "c = Transpose(b) {perm=[0,2,1]}\nd = MatMul(c, w2)\noutput y = d"},
    {"Attention",
     "input x : f32[1,12,32]\ninput w1 : f32[32,32]\ninput w2 : f32[32,32]\ninput w3 : f32[32,32]\ninput w4 : "
     "f32[32,32]\nq = MatMul(x, w1)\nk = MatMul(x, w2)\nv = MatMul(x, w3)\n"
     "q4 = Reshape(q) {shape=[1,12,4,8]}\nk4 = Reshape(k) {shape=[1,12,4,8]}\nv4 = Reshape(v) {shape=[1,12,4,8]}\nqt = "
     "Transpose(q4) {perm=[0,2,1,3]}\n"
     "kt = Transpose(k4) {perm=[0,2,3,1]}\nvt = Transpose(v4) {perm=[0,2,1,3]}\ns = MatMul(qt, kt)\nconstant c = f32[] "
     "{0.35}\nt = Mul(s, c)\np = Softmax(t) {axis=-1}\n"
     "o = MatMul(p, vt)\not = Transpose(o) {perm=[0,2,1,3]}\nor = Reshape(ot) {shape=[1,12,32]}\ny = MatMul(or, w4)\nz "
     "= Add(y, x)\noutput y = z"},
    {"InstanceNormBlocks",
     "input x : f32[1,3,8,8]\ninput w1 : f32[20,3,3,3]\ninput w2 : f32[20]\ninput w3 : f32[20]\na = Conv(x, w1)\nb = "
     "InstanceNormalization(a, w2, w3)\ny = Relu(b)\noutput y = y"},
    // Groups of channels between images that lie with channels last, one of them shared by a cluster; their result is
    // read twice.
    {"GroupNormBetweenConvolutions",
     "input x : f32[1,3,40,41]\ninput w1 : f32[16,3,3,3]\ninput w2 : f32[2]\ninput w3 : f32[2]\ninput w4 : "
     "f32[16,1,1]\n"
     "input w5 : f32[16,1,1]\ninput w6 : f32[20,16,3,3]\na = Conv(x, w1) {pads=[1,1,1,1]}\nr = Reshape(a) "
     "{shape=[1,2,13120]}\nn = InstanceNormalization(r, w2, w3)\nb = Reshape(n) {shape=[1,16,40,41]}\nc = Mul(b, w4)\n"
     "d = Add(c, w5)\ne = Sigmoid(d)\nf = Mul(d, e)\ny = Conv(f, w6)\noutput y = y"},
    // Rows of updates of each block's own places, and of places that all blocks share.
    {"ScatteredInBlocks",
     "input x : f32[3,4,36]\ninput p : i64[3,9,1]\ninput q : i64[1,9,1]\ninput u : f32[3,9,36]\na = ScatterAlong(x, p, "
     "u) "
     "{axis=1, reduction=\"add\"}\nb = ScatterAlong(x, q, u) {axis=1, reduction=\"add\"}\nc = ScatterAlong(x, p, u) "
     "{axis=1, reduction=\"none\"}\noutput y = a\noutput z = b\noutput v = c"},
    // By weights that are inputs, or made of them; of an image that is a constant.
    {"ComputedWeights",
     "input x : f32[2,8,9,10]\ninput k : f32[12,8,3,3]\ninput l : f32[24,3,3,2]\ninput f : f32[12,1,1,1]\n"
     "m = Mul(k, f)\na = Conv(x, m) {pads=[1,1,1,1]}\nb = Relu(a)\nc = Conv(b, l) {group=4, strides=[2,1]}\noutput y = "
     "c"},
    {"ComputedWeightsOfConstantImage",
     "input w1 : f32[1,16,6,7]\ninput k : f32[16,16,3,3]\ninput t : f32[16,4,2,2]\na = Conv(w1, k) {pads=[1,1,1,1]}\nb "
     "= "
     "Tanh(a)\nc = ConvTranspose(b, t) {strides=[2,2]}\noutput y = c"},
    {"WeightArithmetic",
     "input x : f32[3,4]\ninput w1 : f32[4,5]\ninput w2 : f32[4,5]\na = Mul(w1, w2)\nb = Exp(a)\nc = MatMul(x, b)\nd = "
     "ReduceSum(a) {axes=[0], keepdims=0}\n"
     "e = Add(c, d)\noutput y = e\noutput z = b"},
    {"OutputIsInput", "input x : f32[3,4]\ny = Identity(x)\nz = Reshape(x) {shape=[12]}\noutput y = y\noutput z = z"},
    {"OutputTwice",
     "input x : f32[3,4]\na = Exp(x)\nb = Identity(a)\nc = Reshape(a) {shape=[4,3]}\noutput y = a\noutput z = "
     "b\noutput u = c"},
    {"DepthToSpaceOps",
     "input x : f32[1,8,3,4]\na = DepthToSpace(x) {blocksize=2}\nb = SpaceToDepth(a) {blocksize=2}\noutput y = "
     "a\noutput z = b"},
    {"ExpandTile",
     "input x : f32[1,4,1]\na = Expand(x) {shape=[3,4,5]}\nb = Tile(x) {repeats=[2,2,3]}\noutput y = a\noutput z = b"},
    {"Repeat",
     "input x : f32[2,3,5,7]\na = Repeat(x) {repeats=[1,1,2,2]}\nb = Repeat(x) {repeats=[1,1,1,3]}\n"
     "c = Repeat(b) {repeats=[2,1,3,1]}\nd = Neg(a)\noutput y = d\noutput z = c"},
    {"RepeatOfBlocks",
     "input x : f32[1,20,6,7]\ninput w1 : f32[20,20,3,3]\ninput w2 : f32[24,20,1,1]\na = Conv(x, w1)\n"
     "b = Repeat(a) {repeats=[1,1,2,1]}\nc = Repeat(b) {repeats=[1,1,1,2]}\nd = Conv(c, w2)\noutput y = d"},
    {"PixelsToPixels",
     "input x : f32[2,9,8,24]\ninput w1 : f32[40,24,3,3]\na = Transpose(x) {perm=[0,3,1,2]}\nb = Conv(a, w1)\n"
     "c = Relu(b)\nd = Transpose(c) {perm=[0,2,3,1]}\ne = AveragePool(a) {kernel_shape=[2,2]}\n"
     "f = Transpose(e) {perm=[0,2,3,1]}\noutput y = d\noutput z = c\noutput u = f\noutput v = d"},
    {"ShapesOfThings",
     "input x : f32[3,4]\na = Shape(x)\nb = FillLike(x) {value=2.5}\nc = Add(b, x)\noutput y = a\noutput z = c"},
    {"MatMulGeluInParts",
     "input x : f32[6,20]\ninput w1 : f32[20,33]\ninput w2 : f32[33]\nconstant c1 = f32[] {1.4142135}\nconstant c2 = "
     "f32[] {1}\nconstant c3 = f32[] {0.5}\na = MatMul(x, w1)\nb = Add(a, w2)\nd = Div(b, c1)\ne = Erf(d)\nf = "
     "Add(e, c2)\ng = Mul(b, f)\nh = Mul(g, c3)\noutput y = h"},
    {"ConvQuickGelu",
     "input x : f32[1,16,7,7]\ninput w1 : f32[32,16,3,3]\nconstant c1 = f32[] {1.702}\na = Conv(x, w1)\nb = Mul(a, "
     "c1)\nc = Sigmoid(b)\nd = Mul(a, c)\noutput y = d"},
    {"ConvHardSwishByClip",
     "input x : f32[1,16,7,7]\ninput w1 : f32[32,16,1,1]\nconstant c1 = f32[] {3}\nconstant c2 = f32[] {6}\na = "
     "Conv(x, w1)\nb = Add(a, c1)\nc = Clip(b) {min=0.0, max=6.0}\nd = Mul(a, c)\ne = Div(d, c2)\noutput y = e"},
    {"MatMulClipOfNoRange",
     "input x : f32[6,20]\ninput w1 : f32[20,33]\na = MatMul(x, w1)\nb = Clip(a) {min=1.0, max=-1.0}\noutput y = b"},
    {"MatMulSwishOfNaN",
     "input x : f32[6,20]\ninput w1 : f32[20,33]\nconstant c1 = f32[] {nan}\na = MatMul(x, w1)\nb = Mul(a, c1)\nc = "
     "Sigmoid(b)\nd = Mul(a, c)\noutput y = d"},
    {"MatMulEluOfInfinity",
     "input x : f32[6,20]\ninput w1 : f32[20,33]\na = MatMul(x, w1)\nb = Elu(a) {alpha=inf}\noutput y = b"},
    {"ATileTurnedOverAndComputedOn",
     "input x : f32[3,37,70]\ninput z : f32[37]\ninput u : f32[3,70,37]\na = Transpose(x) {perm=[0,2,1]}\n"
     "b = Exp(a)\nc = Add(b, z)\nd = Mul(c, u)\ne = Relu(a)\noutput y = d\noutput z = e"},
    {"TwoReadsAcross",
     "input x : f32[37,70]\ninput z : f32[37,70]\na = Transpose(x) {perm=[1,0]}\nb = Transpose(z) {perm=[1,0]}\n"
     "c = Add(a, b)\noutput y = c"},
    {"PiecesOfBlockedImagesJoined",
     "input x : f32[1,3,9,41]\ninput w1 : f32[24,3,3,3]\ninput w2 : f32[24,3,3,1]\na = Conv(x, w1) {pads=[1,1,1,1]}\n"
     "b = Conv(x, w2) {pads=[1,0,1,0]}\nc = Concat(a, b) {axis=3}\nd = Relu(c)\noutput y = d"},
    {"RowsJoinedAndCut",
     "input x : f32[1,3,9,11]\ninput w1 : f32[16,3,3,3]\ninput w2 : f32[16,3,3,3]\ninput w3 : f32[16,16,3,3]\n"
     "a = Conv(x, w1) {pads=[1,1,1,1]}\nb = Conv(x, w2) {pads=[0,1,0,1]}\nc = Concat(a, b) {axis=2}\nd = Conv(c, w3)\n"
     "e = Slice(d) {axes=[2], starts=[2], ends=[9]}\nf = Conv(e, w3)\noutput y = f"},
    // Loops that the compiler unrolls, on weights that begin the file: it may not read before them.
    {"GuardedReads",
     "input x : f32[4]\ninput w1 : f32[3]\ninput w2 : f32[1]\na = Concat(x, w1, w2, x) {axis=0}\n"
     "y = ReduceMean(a) {axes=[0], keepdims=1}\nz = ReduceMax(a) {axes=[0], keepdims=1}\noutput y = y\noutput z = z"},
    {"EmptyWeights",
     "input x : f32[2,3]\ninput w1 : f32[2,0]\ninput w2 : f32[3,4]\ninput w3 : f32[0,4]\n"
     "a = Concat(x, w1) {axis=1}\nb = MatMul(a, w2)\nc = Concat(b, w3) {axis=0}\noutput y = c"},
    {"PadsNothing",
     "input x : f32[2,5]\na = Softmax(x) {axis=1}\nb = Slice(a) {starts=[0], ends=[0], axes=[1], steps=[1]}\n"
     "c = Pad(b) {pads=[0,1,0,1]}\noutput y = c"},
    {"ScatteredRows",
     "input x : f32[9,300]\ninput u : f32[7,300]\nconstant p = i64[7,1] {3, 0, 3, 9, -1, 8, 0}\n"
     "a = ScatterAlong(x, p, u)\nb = ScatterAlong(x, p, u) {reduction=\"add\"}\noutput y = a\noutput z = b"},
    {"ScatteredElements",
     "input x : f32[3,5,40]\ninput u : f32[3,4,40]\ninput v : f32[3,4,40]\na = Cast(v) {to=7}\n"
     "b = ScatterAlong(x, a, u) {axis=1}\nc = ScatterAlong(x, a, u) {axis=1, reduction=\"mul\"}\n"
     "d = ScatterAlong(x, a, u) {axis=1, reduction=\"max\"}\ne = ScatterAlong(x, a, u) {axis=1, "
     "reduction=\"min\"}\noutput y = b\noutput z = c\noutput p = d\noutput q = e"},
    {"ScatteredBetween",
     "input x : f32[2000,3]\ninput u : f32[1500,3]\ninput v : f32[1500,1]\na = Mul(v, v)\nb = Cast(a) {to=6}\n"
     "c = Relu(u)\nd = Neg(x)\ne = ScatterAlong(d, b, c) {reduction=\"add\"}\nf = Sigmoid(e)\noutput y = f"},
    {"ScatteredIntegers",
     "input x : f32[20]\ninput u : f32[6]\na = Cast(x) {to=7}\nb = Cast(u) {to=7}\nconstant p = i32[6] {4, 19, 4, 0, "
     "7, 4}\nc = ScatterAlong(a, p, b)\nd = ScatterAlong(a, p, b) {reduction=\"add\"}\ne = ScatterAlong(a, p, b) "
     "{reduction=\"mul\"}\noutput y = c\noutput z = d\noutput p = e"},
    {"WideIntegers",
     "input x : f32[6]\na = Cast(x) {to=7}\nconstant k = i64[] {9007199254740993}\nconstant l = i64[] "
     "{9007199254740992}\nb = Add(a, k)\nc = Sub(b, l)\nd = Less(b, k)\noutput y = c\noutput z = d"},
    {"UnsignedIntegers",
     "input x : f32[6]\nn = Abs(x)\na = Cast(n) {to=13}\nconstant zero = u64[] {0}\nconstant two = u64[] {2}\n"
     "constant ten = u64[] {10}\nh = Sub(zero, two)\nm = Max(a, h)\nc = Mod(m, ten)\nd = Less(a, h)\n"
     "e = Min(a, h)\nf = Div(m, h)\noutput y = c\noutput z = d\noutput p = e\noutput q = f"},
    {"TransposedInStepsOfOne",
     "input x : f32[2,12,9,7]\ninput w1 : f32[12,10,5,3]\ninput w2 : f32[20]\na = ConvTranspose(x, w1, w2) {group=2, "
     "pads=[1,0,3,2], dilations=[1,2]}\nb = Relu(a)\ninput u : f32[1,32,20]\ninput w3 : f32[32,16,4]\n"
     "c = ConvTranspose(u, w3) {pads=[1,2]}\ninput v : f32[1,3,4,4,4]\ninput w4 : f32[3,5,2,3,2]\n"
     "d = ConvTranspose(v, w4)\ninput t : f32[1,4,6,6]\ninput w5 : f32[4,6,2,2]\n"
     "e = ConvTranspose(t, w5) {pads=[2,1,1,2]}\noutput y = b\noutput z = c\noutput r = d\noutput q = e"},
    // Sums beyond a type's range are what it holds of them before they are compared, divided or made wider.
    {"NarrowIntegers",
     "input x : i8[9]\nconstant k = i8[] {127}\nconstant two = i8[] {2}\na = Add(x, k)\nb = Div(a, two)\nc = Max(a, "
     "x)\nd = Less(a, x)\ne = Cast(a) {to=6}\nf = Mul(a, a)\ng = Equal(f, x)\ninput u : u8[2,9]\nconstant l = u8[] "
     "{254}\nh = Add(u, l)\ni = ReduceMax(h) {axes=[0], keepdims=0}\nj = Div(h, u)\ninput v : i32[5]\n"
     "constant m = i32[] {2147483647}\no = Add(v, m)\np = Clip(o) {min=0.0, max=32.0}\nq = Sub(v, o)\nr = Cast(q) "
     "{to=7}\noutput b = b\noutput c = c\noutput d = d\noutput e = e\noutput g = g\noutput i = i\noutput j = j\n"
     "output p = p\noutput r = r"},
    // A choice of numbers that no float holds.
    {"ChosenIntegers",
     "input x : f32[8]\nconstant z = f32[] {0}\nconstant a = i32[] {2147483647}\nconstant b = i32[] {16777217}\n"
     "t = Less(x, z)\nc = Where(t, a, b)\nconstant k = i64[] {9007199254740991}\nconstant l = i64[] {-33554433}\n"
     "d = Where(t, k, l)\noutput y = c\n"
     "output z = d"},
    {"UnsignedReductions",
     "input x : u64[3,40]\nconstant k = u64[] {2}\na = Sub(x, k)\nb = ReduceMax(a) {axes=[1], keepdims=0}\n"
     "c = ReduceMin(a) {axes=[0], keepdims=0}\nd = Abs(a)\ne = ReduceL1(a) {axes=[1], keepdims=0}\noutput y = b\n"
     "output z = c\noutput u = d\noutput v = e"},
};

// Numbers of 16 bits in memory, computed with as floats: no library has them here, so that products are loops, too.
const Row kHalves[] = {
    {"HalfChain", "input x : f16[2,3,37]\na = Exp(x)\nb = Sigmoid(a)\nc = Sub(b, x)\noutput y = c\noutput z = a"},
    {"BrainChain", "input x : bf16[2,3,37]\na = Relu(x)\nb = Mul(a, x)\noutput y = b"},
    {"HalfToFloatAndBack",
     "input x : f16[5,9]\na = Cast(x) {to=1}\nb = Tanh(a)\nc = Cast(b) {to=10}\noutput y = b\noutput z = c"},
    {"RoundedBetween", "input x : f32[100]\na = Cast(x) {to=16}\nb = Cast(a) {to=1}\noutput y = b"},
    {"DoubleToHalf", "input x : f64[100]\na = Cast(x) {to=10}\nb = Cast(x) {to=16}\noutput y = a\noutput z = b"},
    {"HalfSoftmax", "input x : f16[3,4,70]\ny = Softmax(x) {axis=-1}\noutput y = y"},
    {"HalfProduct", "input x : f16[4,33]\ninput w : f16[33,20]\ny = MatMul(x, w)\noutput y = y"},
    {"HalfConvolution",
     "input x : f16[1,3,9,8]\ninput w : f16[4,3,3,3]\ninput w2 : f16[4]\na = Conv(x, w, w2) {pads=[1,1,1,1]}\n"
     "y = Relu(a)\noutput y = y"},
    {"HalfPools",
     "input x : f16[1,3,9,8]\na = MaxPool(x) {kernel_shape=[2,2]}\nb = AveragePool(x) {kernel_shape=[3,3]}\n"
     "output y = a\noutput z = b"},
    {"HalfMoves",
     "input x : f16[2,6,5]\na = Transpose(x) {perm=[2,0,1]}\nb = Concat(x, x) {axis=1}\nc = Reshape(x) "
     "{shape=[12,5]}\noutput y = a\noutput z = b\noutput u = c"},
    {"HalfConstant", "input w : f16[3,4]\na = Neg(w)\noutput y = a"},
    {"HalfScattered",
     "input x : f16[5,9]\ninput u : f16[3,9]\nconstant p = i64[3,1] {4, 0, 4}\na = ScatterAlong(x, p, u)\n"
     "b = ScatterAlong(x, p, u) {reduction=\"add\"}\noutput y = a\noutput z = b"}};

void expect_all_agree(bool plain, int threads) {
  for (const std::string& line : run_batch(graph_cases(), plain, {TargetKind::Cpu, threads})) ADD_FAILURE() << line;
}

TEST(EmittedGraphs, AgreeWithTheInterpreterWithoutBlocks) {
  Target target{TargetKind::Cpu, 2};
  target.without = {"layout:blocked"};
  for (const std::string& line : run_batch(graph_cases(), false, target)) ADD_FAILURE() << line;
}

TEST(EmittedGraphs, AgreeWithTheInterpreterInBlocks) { expect_all_agree(false, 2); }
TEST(EmittedGraphs, AgreeWithTheInterpreterInBlocksOf8) {
  const Target target{.threads = 2, .vector_lanes = 8};
  for (const std::string& line : run_batch(graph_cases(), false, target)) ADD_FAILURE() << line;
}
TEST(EmittedGraphs, AgreeWithTheInterpreterPlain) { expect_all_agree(true, 1); }

TEST(EmittedGraphs, HalvesAgreeWithTheInterpreter) {
  for (const std::string& line : run_batch(half_cases(), false, {TargetKind::Cpu, 2})) ADD_FAILURE() << line;
  const BatchCase inside_a_kernel = make_case("RoundedBetweenAlone", kHalves[3].text, 8);
  for (const std::string& line : run_batch({inside_a_kernel}, false, {TargetKind::Cpu, 2})) ADD_FAILURE() << line;
}

}  // namespace

std::vector<BatchCase> half_cases() {
  std::vector<BatchCase> cases;
  for (const Row& row : kHalves) cases.push_back(make_case(row.name, row.text, 7));
  return cases;
}

std::vector<BatchCase> graph_cases() {
  std::vector<BatchCase> cases;
  uint64_t seed = 1;
  for (const Row& row : kRows) cases.push_back(make_case(row.name, row.text, seed++));
  return cases;
}

}  // namespace gopt
