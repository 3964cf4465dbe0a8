// Every operator's definition keeps its promises for all sizes: reads in bounds, no empty maximum, no size 0 that
// divides. One node of a graph is one row; its inputs and attributes are open where the definition lets them be.
#include "rule_files.h"
#include "rules/well_formed.h"

namespace gopt {

using namespace verifier;

namespace {

struct Row {
  const char* name;
  const char* inputs;  // "var" lines
  const char* node;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class DefinitionTest : public ::testing::TestWithParam<Row> {};

TEST_P(DefinitionTest, ReadsInBounds) {
  const std::string side = std::string("z = ") + GetParam().node + "\nreturn z\n";
  const RewriteRule rule =
      rule_of("rule x\n" + std::string(GetParam().inputs) + "\nleft\n" + side + "right\n" + side + "end\n");
  const NodePtr node = rule.left.outputs()[0].value.node;
  std::vector<TensorExpr> tensors;
  std::vector<TensorType> types;
  Cond context;
  for (const Value& v : node->inputs) {
    types.push_back(v.type());
    tensors.push_back(input_tensor(static_cast<int>(tensors.size()), v.type()));
    for (const Index& extent : *v.type().shape) {
      std::set<AtomId> symbols;
      collect_symbols(extent, symbols);
      for (AtomId s : symbols) context = context && at_least(Index::from_atom(s), Index(0));
    }
  }
  const auto definition = define(node->op, tensors, node->attributes);
  ASSERT_TRUE(definition.ok()) << definition.error().message;
  for (const Requirement& r : definition->requirements) context = context && r.cond;
  Solver solver({});
  for (const TensorExpr& output : definition->outputs) EXPECT_EQ(find_ill_formed(output, types, context, solver), "");
}

INSTANTIATE_TEST_SUITE_P(
    Operators, DefinitionTest,
    ::testing::Values(
        Row{"Add", "var x f32[a,b]\nvar y f32[b]", "Add(x, y)"},
        Row{"AddOfOne", "var x f32[a,b]\nvar y f32[a,1]", "Add(x, y)"},
        Row{"MatMul", "var x f32[p,m,k]\nvar y f32[k,n]", "MatMul(x, y)"},
        Row{"MatMulVector", "var x f32[k]\nvar y f32[p,k,n]", "MatMul(x, y)"},
        Row{"Gemm", "var x f32[k,m]\nvar y f32[n,k]\nvar b f32[n]", "Gemm(x, y, b) {transA=1, transB=1}"},
        Row{"Conv", "var x f32[n,c,h,w]\nvar k f32[o,c,kh,kw]\nvar b f32[o]",
            "Conv(x, k, b) {pads=[1,2,1,0], strides=[2,3], dilations=[1,2]}"},
        Row{"ConvOpen", "var x f32[n,c,h,w]\nvar k f32[o,c,kh,kw]", "Conv(x, k) {pads=[pt,pl,pb,pr]}"},
        Row{"ConvStrides", "var x f32[n,c,h]\nvar k f32[o,c,kh]", "Conv(x, k) {strides=[s]}"},
        Row{"ConvGroups", "var x f32[n,3*c,h,w]\nvar k f32[3*o,c,kh,kw]", "Conv(x, k) {group=3}"},
        Row{"ConvTranspose", "var x f32[n,c,h,w]\nvar k f32[c,o,3,3]",
            "ConvTranspose(x, k) {strides=[2,2], pads=[1,1,1,1]}"},
        Row{"MaxPool", "var x f32[n,c,h,w]", "MaxPool(x) {kernel_shape=[3,2], pads=[1,0,1,1], strides=[2,2]}"},
        Row{"MaxPoolOpen", "var x f32[n,c,h,w]", "MaxPool(x) {kernel_shape=[k,l], pads=[p,q,p,q]}"},
        Row{"AveragePool", "var x f32[n,c,h,w]", "AveragePool(x) {kernel_shape=[k,l], pads=[p,q,p,q]}"},
        Row{"GlobalAveragePool", "var x f32[n,c,h,w]", "GlobalAveragePool(x)"},
        Row{"GlobalMaxPool", "var x f32[n,c,h,w]", "GlobalMaxPool(x)"},
        Row{"BatchNormalization", "var x f32[n,c,h]\nvar s f32[c]\nvar b f32[c]\nvar m f32[c]\nvar v f32[c]",
            "BatchNormalization(x, s, b, m, v)"},
        Row{"LayerNormalization", "var x f32[a,b]\nvar s f32[b]", "LayerNormalization(x, s) {axis=1}"},
        Row{"Softmax", "var x f32[a,b]", "Softmax(x) {axis=0}"},
        Row{"LogSoftmax", "var x f32[a,b]", "LogSoftmax(x) {axis=1}"},
        Row{"ReduceSum", "var x f32[a,b,c]", "ReduceSum(x) {axes=[0,2]}"},
        Row{"ReduceMean", "var x f32[a,b]", "ReduceMean(x) {axes=[1], keepdims=0}"},
        Row{"ReduceMax", "var x f32[a,b]", "ReduceMax(x) {axes=[0]}"},
        Row{"ReduceLogSumExp", "var x f32[a,b]", "ReduceLogSumExp(x) {axes=[1]}"},
        Row{"Concat", "var x f32[a,b]\nvar y f32[c,b]\nvar z1 f32[d,b]", "Concat(x, y, z1) {axis=0}"},
        Row{"Slice", "var x f32[n]", "Slice(x) {starts=[a], ends=[b], axes=[0], steps=[3]}"},
        Row{"Transpose", "var x f32[a,b,c]", "Transpose(x) {perm=[2,0,1]}"},
        Row{"ReshapeMerge", "var x f32[a,b]", "Reshape(x) {shape=[a*b], allowzero=1}"},
        Row{"ReshapeSplit", "var x f32[a*b]", "Reshape(x) {shape=[a,b], allowzero=1}"},
        Row{"Flatten", "var x f32[a,b,c]", "Flatten(x) {axis=1}"},
        Row{"Unsqueeze", "var x f32[a,b]", "Unsqueeze(x) {axes=[0,2]}"},
        Row{"Expand", "var x f32[a,1]", "Expand(x) {shape=[a,b]}"},
        Row{"Tile", "var x f32[a]", "Tile(x) {repeats=[3]}"},
        Row{"Repeat", "var x f32[a,b]", "Repeat(x) {repeats=[3,1]}"},
        Row{"Pad", "var x f32[a,b]", "Pad(x) {pads=[p,q,r,s]}"},
        Row{"PadReflect", "var x f32[a]", "Pad(x) {pads=[2,1], mode=\"reflect\"}"},
        Row{"PadEdge", "var x f32[a]", "Pad(x) {pads=[2,1], mode=\"edge\"}"},
        Row{"DepthToSpace", "var x f32[n,4*c,h,w]", "DepthToSpace(x) {blocksize=2}"},
        Row{"SpaceToDepth", "var x f32[n,c,2*h,2*w]", "SpaceToDepth(x) {blocksize=2}"},
        Row{"Trilu", "var x f32[a,b]", "Trilu(x) {k=1}"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gopt
