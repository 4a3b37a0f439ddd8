// The card that a measured device makes: bounds are best samples, of the best arithmetic for a format.
#include <gtest/gtest.h>

#include "bench/measure.h"

namespace memwall {
namespace {

DeviceFigures cpu() {
  DeviceFigures figures;
  figures.info.kind = "cpu";
  figures.read_GBps = 30;
  figures.best_read_GBps = 50;
  figures.best_traffic_GBps = 60;
  figures.peak_GFLOPs = 230;
  figures.peaks[ComputeType::f32] = {230, 220, "FMA"};
  figures.peaks[ComputeType::bf16] = {460, 440, "vdpbf16ps"};
  figures.peaks[ComputeType::int8] = {920, 900, "vpdpbusd"};
  return figures;
}

double gflops(const Card& card, const char* format) {
  return peak_for(card, *find_format(format)).flops_per_s / 1e9;
}

TEST(CardOfADevice, TakesTheBestSampleOfTheMemory) {
  EXPECT_EQ(card_of(cpu()).bandwidth_GBps, 50);
  EXPECT_EQ(card_of(cpu(), true).bandwidth_GBps, 60);  // a state is written as often as it is read
}

TEST(CardOfADevice, IntegersBoundWhatEnginesRunInIntegers) {
  const Card card = card_of(cpu());
  EXPECT_DOUBLE_EQ(gflops(card, "f32"), 230);
  EXPECT_DOUBLE_EQ(gflops(card, "f16"), 230);  // widened, as nothing multiplies f16 here
  EXPECT_DOUBLE_EQ(gflops(card, "bf16"), 460);
  for (const char* format : {"q8_0", "q4_0", "q4_k", "int4-g128", "int8-c", "mxfp4", "nvfp4", "nf4"})
    EXPECT_DOUBLE_EQ(gflops(card, format), 920) << format;
  EXPECT_DOUBLE_EQ(gflops(card, "f8_e4m3"), 460);  // no integers: widened to 16 bits
  EXPECT_DOUBLE_EQ(peak_for(card, KvFormat::int8).flops_per_s / 1e9, 920);
  EXPECT_DOUBLE_EQ(peak_for(card, KvFormat::f16).flops_per_s / 1e9, 230);
}

// Cards of datasheets keep their kernels: weight-only formats are widened to 16 bits.
TEST(CardOfADevice, OtherCardsWidenWeightOnlyFormats) {
  Card card = card_of(cpu());
  card.quantises_activations = false;
  EXPECT_DOUBLE_EQ(gflops(card, "int4-g128"), 460);
  EXPECT_DOUBLE_EQ(gflops(card, "q4_0"), 920);
}

TEST(CardOfADevice, WithoutByteProductsF32BoundsAll) {
  DeviceFigures figures = cpu();
  figures.peaks.erase(ComputeType::int8);
  figures.peaks.erase(ComputeType::bf16);
  for (const char* format : {"f32", "f16", "bf16", "q8_0", "int4-g128"})
    EXPECT_DOUBLE_EQ(gflops(card_of(figures), format), 230) << format;
}

TEST(DeviceFigures, TheRidgeIsBestOverBest) { EXPECT_DOUBLE_EQ(cpu().ridge(), 230.0 / 50); }

}  // namespace
}  // namespace memwall
