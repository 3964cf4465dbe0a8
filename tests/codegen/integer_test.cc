// Convolutions and products of 8-bit integers: that they are kernels of integers, and compute what the interpreter does
// but for sums that lie between two integers, of which rounding in floats may give the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "batch.h"

namespace gopt {
namespace {

// Operands as text: `x` in zero point `zx`; weights of a scale a channel where `scales` says so.
std::string left(const std::string& type, const std::string& dims, int zero, const std::string& name = "x") {
  return "input " + name + " : " + type + "[" + dims + "]\nconstant s" + name + " = f32[] {0.03}\nconstant z" + name +
         " = " + type + "[] {" + std::to_string(zero) + "}\nd" + name + " = Dequantize(" + name + ", s" + name + ", z" +
         name + ")\n";
}
std::string ramp(int count, double first, double step) {
  std::ostringstream text;
  for (int i = 0; i < count; i++) text << (i ? ", " : "") << first + step * i;
  return text.str();
}
std::string weights(const std::string& type, const std::string& dims, const std::string& scale_dims, int scales,
                    int zero) {
  return "input w1 : " + type + "[" + dims + "]\nconstant sw = f32[" + scale_dims + "] {" +
         ramp(scales, 0.002, 0.0005) + "}\nconstant zw = " + type + "[] {" + std::to_string(zero) +
         "}\ndw = Dequantize(w1, sw, zw)\n";
}
std::string bias(int count) {
  return "constant b = f32[" + std::to_string(count) + "] {" + ramp(count, -1.5, 0.1) + "}\n";
}
std::string result(const std::string& value, const std::string& type, double scale, int zero) {
  std::ostringstream text;
  text << "constant sy = f32[] {" << scale << "}\nconstant zy = " << type << "[] {" << zero << "}\nq = Quantize("
       << value << ", sy, zy)\noutput y = q";
  return text.str();
}

// As floats again.
std::string rounded(const std::string& value, const std::string& type, double scale, int zero) {
  std::ostringstream text;
  text << "constant sc = f32[] {" << scale << "}\nconstant zc = " << type << "[] {" << zero << "}\nqc = Quantize("
       << value << ", sc, zc)\ndc = Dequantize(qc, sc, zc)\n";
  return text.str();
}

struct Row {
  const char* name;
  std::string text;
  bool rounds = true;  // its result is of integers
};

std::vector<Row> rows() {
  const std::string image = "2,12,9,8", columns = "19,1,1,1";
  return {
      {"asymmetric", left("u8", image, 117) + weights("i8", "19,12,3,3", columns, 19, 0) + bias(19) +
                         "c = Conv(dx, dw, b) {pads=[1,1,1,1]}\n" + result("c", "u8", 0.4, 121)},
      {"relu", left("u8", image, 117) + weights("i8", "19,12,3,3", "", 1, 0) + bias(19) +
                   "c = Conv(dx, dw, b) {pads=[0,1,2,1], strides=[2,1]}\nr = Relu(c)\n" + result("r", "u8", 0.3, 0)},
      {"clip", left("i8", image, -9) + weights("i8", "19,12,3,3", columns, 19, 0) +
                   "c = Conv(dx, dw) {dilations=[2,1]}\nr = Clip(c) {min=-3, max=11}\n" + result("r", "i8", 0.3, -5)},
      // Most of what it gives lies beyond the type.
      {"saturates", left("u8", image, 20) + weights("i8", "19,12,3,3", columns, 19, 0) + "c = Conv(dx, dw)\n" +
                        result("c", "i8", 0.01, 13)},
      {"unsigned_weights", left("u8", image, 117) + weights("u8", "19,12,3,3", columns, 19, 131) + bias(19) +
                               "c = Conv(dx, dw, b) {pads=[1,1,1,1]}\n" + result("c", "u8", 0.4, 121)},
      {"signed_image", left("i8", image, 31) + weights("u8", "19,12,2,3", "", 1, 100) +
                           "c = Conv(dx, dw) {pads=[1,1,0,1]}\n" + result("c", "i8", 0.4, 3)},
      {"floats",
       left("u8", image, 117) + weights("i8", "19,12,3,3", columns, 19, 0) + bias(19) +
           "c = Conv(dx, dw, b)\nr = Relu(c)\noutput y = r",
       false},
      {"groups", left("u8", "1,24,7,6", 90) + weights("i8", "40,6,3,3", "40,1,1,1", 40, 0) +
                     "c = Conv(dx, dw) {group=4, pads=[1,1,1,1]}\n" + result("c", "u8", 0.4, 128)},
      {"depthwise", left("u8", "1,37,7,6", 90) + weights("i8", "37,1,3,3", "37,1,1,1", 37, 0) + bias(37) +
                        "c = Conv(dx, dw, b) {group=37, pads=[1,1,1,1]}\nr = Clip(c) {min=0, max=6}\n" +
                        result("r", "u8", 0.03, 0)},
      {"depthwise_unsigned", left("i8", "1,37,7,6", 9) + weights("u8", "37,1,3,3", "37,1,1,1", 37, 120) +
                                 "c = Conv(dx, dw) {group=37, strides=[2,2]}\n" + result("c", "i8", 0.1, -20)},
      {"one_axis", left("u8", "2,10,50", 7) + weights("i8", "20,10,5", "20,1,1", 20, 0) +
                       "c = Conv(dx, dw) {pads=[2,2], strides=[2]}\n" + result("c", "u8", 0.4, 128)},
      {"one_tap", left("u8", "1,16,7,9", 7) + weights("i8", "70,16,1,1", "70,1,1,1", 70, 0) +
                      "c = Conv(dx, dw) {strides=[2,2]}\n" + result("c", "u8", 0.4, 128)},
      {"images", left("u8", "1,3,21,20", 114) + weights("i8", "24,3,7,7", "24,1,1,1", 24, 0) +
                     "c = Conv(dx, dw) {strides=[2,2], pads=[3,3,3,3]}\n" + result("c", "u8", 0.6, 128)},
      {"product", left("u8", "2,17,40", 117) + weights("i8", "40,70", "70", 70, 0) + "c = MatMul(dx, dw)\n" +
                      result("c", "u8", 0.5, 121)},
      {"biased_product", left("i8", "13,39", 5) + weights("i8", "39,70", "", 1, 0) + bias(70) +
                             "c = MatMul(dx, dw)\na = Add(b, c)\nr = Relu(a)\n" + result("r", "i8", 0.1, -128)},
      {"product_of_floats",
       left("u8", "33,64", 117) + weights("u8", "64,130", "130", 130, 125) + "c = MatMul(dx, dw)\noutput y = c", false},
      {"row", left("u8", "1,64", 117) + weights("i8", "64,130", "130", 130, 0) + "c = MatMul(dx, dw)\n" +
                  result("c", "u8", 0.5, 121)},
      {"gemm", left("u8", "5,64", 117) + weights("i8", "30,64", "30,1", 30, 0) + bias(30) +
                   "c = Gemm(dx, dw, b) {transB=1}\n" + result("c", "u8", 0.5, 121)},
      // What is added to a result of 8 bits before it is rounded again.
      {"residual", left("u8", image, 117) + left("i8", "2,19,9,8", -7, "k") +
                       weights("i8", "19,12,3,3", columns, 19, 0) + bias(19) +
                       "c = Conv(dx, dw, b) {pads=[1,1,1,1]}\n" + rounded("c", "u8", 0.2, 121) +
                       "a = Add(dk, dc)\nr = Relu(a)\n" + result("r", "u8", 0.15, 3)},
      {"residual_product", left("u8", "2,17,40", 117) + left("u8", "2,17,70", 100, "k") +
                               weights("i8", "40,70", "70", 70, 0) + "c = MatMul(dx, dw)\n" +
                               rounded("c", "i8", 0.3, -4) + "a = Add(dc, dk)\n" + result("a", "i8", 0.4, 11)},
      // A third time is a kernel of its own.
      {"biased_then_residual", left("u8", "13,40", 117) + left("u8", "13,70", 100, "k") +
                                   weights("i8", "40,70", "70", 70, 0) + bias(70) + "c = MatMul(dx, dw)\n" +
                                   rounded("c", "u8", 0.3, 121) + "a = Add(b, dc)\n" + "qa = Quantize(a, sc, zc)\n" +
                                   "da = Dequantize(qa, sc, zc)\nt = Add(da, dk)\n" + result("t", "u8", 0.4, 80)},
      {"biased_later", left("u8", "13,40", 117) + weights("i8", "40,70", "70", 70, 0) + bias(70) +
                           "c = MatMul(dx, dw)\n" + rounded("c", "u8", 0.3, 121) + "a = Add(b, dc)\n" +
                           "r = Clip(a) {min=-20, max=25}\n" + result("r", "u8", 0.3, 80)},
      {"both_computed", left("u8", "2,3,16,21", 117) + left("u8", "2,3,21,25", 140, "k") + "c = MatMul(dx, dk)\n" +
                            result("c", "u8", 0.2, 121)},
      {"both_signed",
       left("i8", "2,16,20", -17) + left("i8", "20,25", 14, "k") + "c = MatMul(dx, dk)\n" + result("c", "i8", 0.2, 1)},
  };
}

bool is_of_integers(const Graph& graph) {
  LayoutCosts costs(true);
  const auto plan = make_plan(graph, {TargetKind::Cpu, 1}, costs);
  EXPECT_TRUE(plan.ok());
  return plan.ok() && plan->kernels.size() <= 4 &&  // images are turned over
         std::ranges::any_of(plan->kernels, [](const Kernel& k) { return k.implementation == "integers"; });
}

// As they are, in 32 bits: products of dynamically quantized models.
std::string cast_product(const std::string& left, const std::string& right, bool is_weight) {
  return "input x : " + left + "\ninput " + (is_weight ? "w1" : "z") + " : " + right +
         "\na = Cast(x) {to=6}\nb = Cast(" + (is_weight ? "w1" : "z") + ") {to=6}\ny = MatMul(a, b)\noutput y = y";
}
const std::vector<Row>& cast_rows() {
  static const std::vector<Row> rows{
      {"cast", cast_product("u8[2,17,40]", "i8[40,70]", true)},
      {"cast_unsigned", cast_product("u8[33,41]", "u8[41,9]", true)},
      {"cast_signed", cast_product("i8[1,64]", "i8[64,130]", true)},
      {"cast_mixed", cast_product("i8[13,39]", "u8[39,17]", true)},
      {"cast_both_computed", cast_product("u8[2,3,16,21]", "i8[2,3,21,25]", false)},
  };
  return rows;
}

// Sums alone, of an image whose zero point is known when it runs, as ConvInteger is read.
std::string sums(const std::string& image_type, const std::string& image, const std::string& weight_type,
                 const std::string& weights, const std::string& zeros, const std::string& attributes) {
  return "input x : " + image_type + "[" + image + "]\ninput zx : " + image_type +
         "[]\nconstant one = f64[] {1}\ndx = Dequantize(x, one, zx)\ninput w1 : " + weight_type + "[" + weights +
         "]\nconstant zw = " + weight_type + zeros + "\ndw = Dequantize(w1, one, zw)\nc = Conv(dx, dw) {" + attributes +
         "}\ns = Cast(c) {to=6}\noutput y = s";
}
const std::vector<Row>& sum_rows() {
  static const std::vector<Row> rows{
      {"sums", sums("u8", "2,12,9,8", "i8", "19,12,3,3", "[] {0}", "pads=[1,1,1,1]")},
      {"sums_strided", sums("u8", "1,3,21,20", "u8", "24,3,7,7", "[] {131}", "strides=[2,2], pads=[3,3,3,3]")},
      {"sums_signed", sums("i8", "1,16,7,9", "i8", "70,16,1,1", "[] {-3}", "")},
      {"sums_same", sums("i8", "1,16,7,9", "u8", "7,16,2,3", "[7,1,1,1] {0, 9, 100, 128, 140, 200, 255}",
                         "auto_pad=\"SAME_LOWER\", strides=[2,1]")},
      {"sums_groups", sums("u8", "1,24,7,6", "i8", "40,6,3,3", "[] {5}", "group=4, dilations=[1,2], pads=[1,2,1,2]")},
      {"sums_depthwise", sums("u8", "1,37,7,6", "u8", "37,1,3,3", "[] {120}", "group=37, pads=[1,1,1,1]")},
      {"sums_one_axis", sums("u8", "2,10,50", "i8", "20,10,5", "[] {0}", "pads=[2,2], strides=[2]")},
  };
  return rows;
}

std::vector<BatchCase> cases() {
  std::vector<BatchCase> cases;
  for (const Row& row : rows()) {
    cases.push_back(make_case(row.name, row.text, cases.size() + 1, 256));
    cases.back().step = row.rounds ? 1 : 0;
    EXPECT_TRUE(is_of_integers(cases.back().graph)) << row.name;
  }
  std::vector<Row> of_sums = cast_rows();
  of_sums.insert(of_sums.end(), sum_rows().begin(), sum_rows().end());
  for (const Row& row : of_sums) {
    cases.push_back(make_case(row.name, row.text, cases.size() + 1, 256));
    EXPECT_TRUE(is_of_integers(cases.back().graph)) << row.name;
  }
  return cases;
}

TEST(IntegerKernels, AgreeWithTheInterpreter) {
  for (const int threads : {1, 2})
    EXPECT_EQ(run_batch(cases(), true, {TargetKind::Cpu, threads}), std::vector<std::string>{});
}

// Tensors of 8 bits that lie otherwise than the floats that they are made of, or that are made of them, are turned over
// in tiles.
TEST(IntegerKernels, TurnWhatTheyReadAndMakeOver) {
  const std::string text =
      "input f : f32[1,40,9,8]\nconstant sf = f32[] {0.03}\nconstant zf = i8[] {5}\nx = Quantize(f, sf, zf)\n"
      "dx = Dequantize(x, sf, zf)\n" +
      weights("i8", "40,40,3,3", "", 1, 0) +
      "c = Conv(dx, dw)\nconstant sy = f32[] {0.4}\nconstant zy = i8[] {-3}\n"
      "q = Quantize(c, sy, zy)\ny = Dequantize(q, sy, zy)\noutput y = y";
  BatchCase turned = make_case("turned", text, 7, 256);
  turned.step = 0.4;
  LayoutCosts costs(true);
  const auto plan = make_plan(turned.graph, {TargetKind::Cpu, 1}, costs);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto code = emit(*plan);
  ASSERT_TRUE(code.ok()) << code.error().message;
  const std::string kernels = text_of(*code, "kernels_");
  size_t count = 0;
  for (size_t at = kernels.find("::transpose("); at != std::string::npos; at = kernels.find("::transpose(", at + 1))
    count++;
  EXPECT_EQ(count, 2u) << kernels;
  for (const int threads : {1, 2})
    EXPECT_EQ(run_batch({turned}, true, {TargetKind::Cpu, threads}), std::vector<std::string>{});
}

// What lies between two integers with scales that floats hold: halves go to the even one, whatever the zero point.
TEST(IntegerKernels, RoundHalvesToEven) {
  const std::string text =
      "input x : u8[6,8]\nconstant one = f32[] {1}\nconstant half = f32[] {0.5}\nconstant none = u8[] {0}\n"
      "dx = Dequantize(x, one, none)\ninput w1 : i8[8,16]\nconstant zw = i8[] {0}\ndw = Dequantize(w1, half, zw)\n"
      "c = MatMul(dx, dw)\nconstant zy = u8[] {7}\nq = Quantize(c, one, zy)\noutput y = q";
  EXPECT_EQ(run_batch({make_case("halves", text, 3, 5)}, true, {TargetKind::Cpu, 1}), std::vector<std::string>{});
}

// What no kernel of integers takes is computed as its definitions say.
TEST(IntegerKernels, LeaveOthersAlone) {
  const std::string image = left("u8", "1,4,5,5", 117), w = weights("i8", "6,4,3,3", "6,1,1,1", 6, 0);
  std::vector<BatchCase> others{
      // Bounds after another step; a scale for each channel of the image; a result that is used as it is, too.
      make_case("sigmoid", image + w + "c = Conv(dx, dw)\nr = Sigmoid(c)\n" + result("r", "u8", 0.004, 0), 1, 256),
      make_case("channels",
                "input x : u8[1,4,5,5]\nconstant sx = f32[4,1,1] {0.1, 0.2, 0.3, 0.4}\nconstant zx = u8[] {3}\n"
                "dx = Dequantize(x, sx, zx)\n" +
                    w + "c = Conv(dx, dw)\n" + result("c", "u8", 0.9, 100),
                2, 256),
      make_case("used_twice", image + w + "c = Conv(dx, dw)\nt = Tanh(c)\noutput z = t\n" + result("c", "u8", 0.4, 100),
                3, 256),
      make_case("three_axes",
                left("u8", "1,2,4,4,4", 10) + weights("i8", "3,2,2,2,2", "", 1, 0) + "c = Conv(dx, dw)\n" +
                    result("c", "u8", 0.4, 100),
                4, 256),
      // Sums of 64 bits that are used as they are, of three axes, of a scale, and of a product.
      make_case("scaled_sums",
                "input x : u8[1,4,5,5]\nconstant s = f64[] {0.5}\nconstant zx = u8[] {9}\ndx = Dequantize(x, s, zx)\n"
                "input w1 : i8[6,4,3,3]\nconstant zw = i8[] {0}\ndw = Dequantize(w1, s, zw)\nc = Conv(dx, dw)\n"
                "y = Cast(c) {to=6}\noutput y = y",
                7, 256),
      make_case("product_of_sums",
                "input x : u8[5,40]\nconstant one = f64[] {1}\nconstant zx = u8[] {9}\ndx = Dequantize(x, one, zx)\n"
                "input w1 : i8[40,16]\nconstant zw = i8[] {3}\ndw = Dequantize(w1, one, zw)\nc = MatMul(dx, dw)\n"
                "y = Cast(c) {to=6}\noutput y = y",
                8, 256),
      make_case("wide_sums", sums("u8", "1,4,5,5", "i8", "6,4,3,3", "[] {0}", "") + "\noutput z = c", 5, 256),
      make_case("three_axes_of_sums", sums("u8", "1,2,4,4,4", "i8", "3,2,2,2,2", "[] {3}", "pads=[1,0,1,0,1,0]"), 6,
                256)};
  for (BatchCase& c : others) {
    c.step = 1;
    LayoutCosts costs(true);
    const auto plan = make_plan(c.graph, {TargetKind::Cpu, 1}, costs);
    ASSERT_TRUE(plan.ok());
    const bool may_be = c.name == "sigmoid" || c.name == "used_twice";  // their sums are floats
    EXPECT_EQ(std::ranges::any_of(plan->kernels, [](const Kernel& k) { return k.implementation == "integers"; }),
              may_be)
        << c.name;
  }
  EXPECT_EQ(run_batch(others, true, {TargetKind::Cpu, 1}), std::vector<std::string>{});
}

}  // namespace
}  // namespace gopt
