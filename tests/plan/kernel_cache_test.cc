// The file of kernel times: whose they are, and what older files say.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "gopt/kernel_costs.h"
#include "graph_with_weights.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

KernelCache load(const std::string& path, const std::string& machine) {
  auto cache = KernelCache::load(path, machine);
  EXPECT_TRUE(cache.ok()) << (cache.ok() ? "" : cache.error().message);
  return cache.ok() ? *cache : KernelCache();
}

TEST(KernelCache, KeepsTheTimesOfEachMachineApart) {
  TestFolder folder;
  const std::string path = folder.file("times");
  KernelCache first = load(path, "cpu: this");
  first.put("a", 1);
  ASSERT_TRUE(first.save().ok());
  KernelCache second = load(path, "cuda: that; CUDA 13.0");
  EXPECT_FALSE(second.find("a"));
  second.put("a", 2);
  ASSERT_TRUE(second.save().ok());
  KernelCache both = load(path, "");
  EXPECT_EQ(both.machines(), (std::vector<std::string>{"cpu: this", "cuda: that; CUDA 13.0"}));
  EXPECT_FALSE(both.find("a"));
  both.choose_machine("cpu: this");
  EXPECT_EQ(both.find("a"), 1);
  both.choose_machine("cuda: that; CUDA 13.0");
  EXPECT_EQ(both.find("a"), 2);
  EXPECT_NE(read_file(path).find("\nmachine cuda: that; CUDA 13.0\n"), std::string::npos) << read_file(path);
}

TEST(KernelCache, SavesWhatItLoaded) {
  TestFolder folder;
  const std::string text = "gopt kernel times 4\n" + std::string(32, '0') + " 3\nmachine cuda: b\n" +
                           std::string(32, '2') + " inf\nplans " + std::string(32, '3') + " 12.5 0.1,2e-05 3,0.25\n" +
                           "machine cpu: a\n" + std::string(32, '1') + " 0.125\nplans " + std::string(32, '4') +
                           " 0.5\nsearch " + std::string(32, '5') + " a text\n";
  write_file(folder.file("times"), text);
  ASSERT_TRUE(load(folder.file("times"), "cpu: c").save().ok());
  EXPECT_EQ(read_file(folder.file("times")), text);
}

// Of digits that are not saved nothing may depend in the run that took the time.
TEST(KernelCache, ATimeIsWhatTheNextRunReads) {
  TestFolder folder;
  KernelCache cache = load(folder.file("times"), "this");
  cache.put("a", 1.0 / 3);
  cache.put("b", 1.2345678e-5);
  cache.put("c", std::numeric_limits<double>::infinity());
  ASSERT_TRUE(cache.save().ok());
  const KernelCache again = load(folder.file("times"), "this");
  for (const char* kernel : {"a", "b", "c"}) EXPECT_EQ(cache.find(kernel), again.find(kernel)) << kernel;
  EXPECT_NEAR(*cache.find("a"), 1.0 / 3, 1e-6);
}

TEST(KernelCache, KeepsTimesOfWholePlansToTheLastDigit) {
  TestFolder folder;
  KernelCache cache = load(folder.file("times"), "this");
  cache.put_plans("pair", {.seconds = 1.5, .ms = {{0.1 + 0.2, 1.0 / 3}, {1e-7, 12}}});
  cache.put_plans("built", {.seconds = 2});
  ASSERT_TRUE(cache.save().ok());
  const KernelCache again = load(folder.file("times"), "this");
  ASSERT_TRUE(again.find_plans("pair"));
  EXPECT_EQ(again.find_plans("pair")->seconds, 1.5);
  EXPECT_EQ(again.find_plans("pair")->ms, (std::vector<std::vector<double>>{{0.1 + 0.2, 1.0 / 3}, {1e-7, 12}}));
  ASSERT_TRUE(again.find_plans("built"));
  EXPECT_TRUE(again.find_plans("built")->ms.empty());
  EXPECT_FALSE(again.find_plans("other"));
  EXPECT_FALSE(load(folder.file("times"), "that").find_plans("pair"));
}

TEST(KernelCache, ReadsTheSecondVersion) {
  TestFolder folder;
  const std::string text = "gopt kernel times 2\nmachine this\n" + to_string(hash_bytes("this|a")) + " 0.5\n";
  write_file(folder.file("times"), text);
  EXPECT_EQ(load(folder.file("times"), "this").find("a"), 0.5);
}

TEST(KernelCache, ABrokenLineIsAnErrorWithItsNumber) {
  TestFolder folder;
  const std::string key(32, '0');
  const std::vector<std::string> broken = {"plans ",
                                           "plans " + key,
                                           "plans 0 1",
                                           "plans " + key + " x",
                                           "plans " + key + " 1 1,2 1",
                                           "plans " + key + " 1 1,,2 1,2,3",
                                           "plans " + key + " 1 1,nan 1,2",
                                           "plans " + key + " 1 1,-2 1,2",
                                           "plan " + key + " 1",
                                           "search",
                                           "search " + key,
                                           "search 0 {}",
                                           key,
                                           key + " x"};
  for (const std::string& line : broken) {
    write_file(folder.file("times"), "gopt kernel times 3\nmachine this\n" + key + " 1\n" + line + "\n");
    const auto loaded = KernelCache::load(folder.file("times"));
    ASSERT_FALSE(loaded.ok()) << line;
    EXPECT_NE(loaded.error().message.find("times:4: expected a key"), std::string::npos) << loaded.error().message;
  }
}

// Files of the first version did not name machines; their times are found by their keys as before, and stay.
TEST(KernelCache, ReadsTheFirstVersion) {
  TestFolder folder;
  const std::string key = to_string(hash_bytes("this|a"));
  write_file(folder.file("times"), "gopt kernel times 1\n" + key + " 0.5\n");
  KernelCache cache = load(folder.file("times"), "this");
  EXPECT_EQ(cache.find("a"), 0.5);
  EXPECT_TRUE(cache.machines().empty());
  cache.put("b", 2);
  ASSERT_TRUE(cache.save().ok());
  const KernelCache again = load(folder.file("times"), "this");
  EXPECT_EQ(again.find("a"), 0.5);
  EXPECT_EQ(again.find("b"), 2);
}

TEST(KernelCache, OtherFilesAreErrors) {
  TestFolder folder;
  for (const char* text : {"gopt kernel times 5\n", "something else\n", "\n", "gopt kernel times 2\nmachin cpu\n"}) {
    write_file(folder.file("times"), text);
    EXPECT_FALSE(KernelCache::load(folder.file("times")).ok()) << text;
  }
  EXPECT_FALSE(KernelCache::load("/dev/zero").ok());  // it never ends
  write_file(folder.file("times"), "");               // as mktemp makes it
  EXPECT_TRUE(KernelCache::load(folder.file("times")).ok());
}

TEST(KernelCache, KeepsWhatSearchesDid) {
  TestFolder folder;
  KernelCache first = load(folder.file("times"), "this"), second = load(folder.file("times"), "that");
  first.put_search("a", "{\"trail\": [1, 2]}");
  ASSERT_TRUE(first.save().ok());
  second.put("k", 1);
  ASSERT_TRUE(second.save().ok());
  const KernelCache again = load(folder.file("times"), "this");
  EXPECT_EQ(again.find_search("a"), "{\"trail\": [1, 2]}");
  EXPECT_FALSE(again.find_search("b"));
  EXPECT_FALSE(load(folder.file("times"), "that").find_search("a"));
}

// The one kernel of a graph that the implementation may run, where it reads and writes blocks of 16 channels.
KernelSpec one_kernel(const std::string& text, const std::string& implementation) {
  const auto specs = admitted_kernels(graph_with_weights(text), {TargetKind::Cpu, 1});
  EXPECT_TRUE(specs.ok()) << (specs.ok() ? "" : specs.error().message);
  for (const KernelSpec& spec : *specs)
    if (spec.kernel.kind == KernelKind::Convolution && spec.kernel.implementation == implementation &&
        std::ranges::all_of(spec.kernel.output_buffers,
                            [&](BufferId b) { return spec.buffers[static_cast<uint32_t>(b)].layout.is_blocked(); }))
      return spec;
  ADD_FAILURE() << "there is none by " << implementation;
  return {};
}

double time_of(const KernelSpec& spec, const KernelCache& cache, const std::vector<KernelSpec>& known, double factor) {
  const auto costs =
      cached_kernel_costs(std::make_shared<const KernelCache>(cache), analytic_kernel_costs({}), known, factor);
  const Plan plan = timing_plan({spec});
  return costs->time_ms(plan, plan.kernels[0]);
}

// Two times of one product that differ by what a shared machine does to them do not say that it is faster without what
// follows it; that it takes twice as long with it does.
TEST(KernelCosts, AProductTakesWhatItTakesWhateverFollowsIt) {
  const std::string conv = "input x : f32[1,32,9,9]\ninput w : f32[32,32,3,3]\ninput wb : f32[32]\n";
  const KernelSpec alone = one_kernel(conv + "a = Conv(x, w) {pads=[1,1,1,1]}\noutput y = a", "direct"),
                   with = one_kernel(conv + "a = Conv(x, w, wb) {pads=[1,1,1,1]}\nr = Relu(a)\noutput y = r", "direct"),
                   other = one_kernel(
                       "input x : f32[1,64,9,9]\ninput w : f32[32,64,3,3]\na = Conv(x, w) "
                       "{pads=[1,1,1,1]}\noutput y = a",
                       "direct");
  const std::vector<KernelSpec> known{alone, with, other};
  for (const double ms : {0.8, 1.0, 1.2}) {  // of two the lower
    KernelCache cache;
    cache.put(kernel_signature(alone), 1);
    cache.put(kernel_signature(with), ms);
    cache.put(kernel_signature(other), 50);
    EXPECT_NEAR(time_of(alone, cache, known, 1), std::min(1.0, ms), 0.02) << ms;
    EXPECT_NEAR(time_of(with, cache, known, 1), std::min(1.0, ms), 0.02) << ms;
    EXPECT_NEAR(time_of(other, cache, known, 1), 50, 1e-3) << ms;
  }
  KernelCache cache;
  cache.put(kernel_signature(alone), 1);
  cache.put(kernel_signature(other), 50);
  for (const double factor : {0.5, 2.0})  // not known: as the one that is, and not as others of its kind
    EXPECT_NEAR(time_of(with, cache, known, factor), 1, 0.08) << factor;
  cache.put(kernel_signature(with), 2);
  EXPECT_NEAR(time_of(with, cache, known, 1), 2, 1e-3);
  EXPECT_NEAR(time_of(alone, cache, known, 1), 1, 1e-3);
  cache.put(kernel_signature(with), std::numeric_limits<double>::infinity());  // the library refuses it
  EXPECT_EQ(time_of(with, cache, known, 1), std::numeric_limits<double>::infinity());
}

// A product of lines and a convolution of one tap over as many positions are one tile, of the same size alone.
TEST(KernelCosts, AConvolutionOfOneTapTakesWhatTheProductDoes) {
  const auto tile = [](const std::string& text, KernelKind kind, const std::string& name) {
    const auto admitted = admitted_kernels(graph_with_weights(text + "\nz = Exp(y)\noutput z = z"),
                                           {.kind = TargetKind::Cuda, .precision = Precision::Fp16});
    for (const KernelSpec& spec : *admitted) {
      if (spec.kernel.kind != kind || spec.kernel.implementation != name) continue;
      const auto layout_of = [&](BufferId id) { return spec.buffers[static_cast<uint32_t>(id)].layout; };
      const bool is_usual = kind == KernelKind::MatrixProduct
                                ? layout_of(spec.kernel.input_buffers[1]).is_transposed()
                                : layout_of(spec.kernel.output_buffers[0]).is_channels_last();
      if (is_usual) return spec;
    }
    throw std::runtime_error("no such kernel");
  };
  const std::string image = "input x : f32[1,128,9,8]\ninput w : f32[64,128,1,1]\n",
                    lines = "input x : f32[72,128]\ninput w : f32[128,64]\n";
  const KernelSpec product = tile(lines + "y = MatMul(x, w)", KernelKind::MatrixProduct, "wgmma:64x64:1");
  const auto convolution = [&](const std::string& text, const char* name = "wgmma:64x64:1") {
    return tile(text, KernelKind::Convolution, name);
  };
  KernelCache cache;
  cache.put(kernel_signature(product), 7);
  const auto time = [&](const KernelSpec& spec) { return time_of(spec, cache, {product}, 3); };
  EXPECT_NEAR(time_of(convolution(image + "y = Conv(x, w)"), cache, {product}, 1), 7, 0.01);
  // What is not known is taken to cost three times as much here.
  EXPECT_GT(time(convolution(image + "y = Conv(x, w)", "wgmma:64x32:1")), 12);
  EXPECT_GT(time(convolution("input x : f32[1,128,9,8]\ninput w : f32[64,128,3,3]\ny = Conv(x, w)")), 12);
  EXPECT_GT(time(convolution("input x : f32[1,128,9,9]\ninput w : f32[64,128,1,1]\ny = Conv(x, w)")), 12);
}

// What is stored where a concatenation wants it, in longer lines, takes what it takes in lines of its own.
TEST(KernelCosts, PartsOfLinesTakeWhatWholeOnesDo) {
  const std::string text =
      "input x : f32[1,64,9,9]\ninput z : f32[1,64,9,9]\ninput w : f32[64,64,3,3]\n"
      "a = Conv(x, w) {pads=[1,1,1,1]}\nb = Relu(a)\nc = Conv(z, w) {pads=[1,1,1,1]}\nd = Relu(c)\n"
      "e = Concat(b, d) {axis=1}\nf = MaxPool(e) {kernel_shape=[2,2]}\noutput f = f";
  const auto admitted =
      admitted_kernels(graph_with_weights(text), {.kind = TargetKind::Cuda, .precision = Precision::Fp16});
  std::vector<KernelSpec> whole, part;
  for (const KernelSpec& spec : *admitted)
    if (spec.kernel.implementation == "wgmma:64x64:1") {
      const Layout& layout = spec.buffers[static_cast<uint32_t>(spec.kernel.output_buffers[0])].layout;
      if (layout.is_channels_last()) (layout.line() == 0 ? whole : part).push_back(spec);
    }
  ASSERT_FALSE(whole.empty());
  ASSERT_FALSE(part.empty());
  KernelCache cache;
  cache.put(kernel_signature(whole[0]), 7);
  EXPECT_NE(kernel_signature(whole[0]), kernel_signature(part[0]));
  EXPECT_NEAR(time_of(part[0], cache, {whole[0]}, 1), 7, 0.01);
}

// Two runs at once, each of which read the file before the other saved it.
TEST(KernelCache, KeepsWhatAnotherRunHasSaved) {
  TestFolder folder;
  KernelCache first = load(folder.file("times"), "this"), second = load(folder.file("times"), "that");
  first.put("a", 1), first.put("b", 2);
  ASSERT_TRUE(first.save().ok());
  second.put("a", 3);
  second.put_plans("pair", {.seconds = 1, .ms = {{1}, {2}}});
  ASSERT_TRUE(second.save().ok());
  first.put("b", 4);
  ASSERT_TRUE(first.save().ok());
  const KernelCache here = load(folder.file("times"), "this"), there = load(folder.file("times"), "that");
  EXPECT_EQ(here.find("a"), 1);
  EXPECT_EQ(here.find("b"), 4);
  EXPECT_EQ(there.find("a"), 3);
  EXPECT_TRUE(there.find_plans("pair"));
}

}  // namespace
}  // namespace gopt
