#include "cuda/card_match.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support.h"

namespace memwall::cuda {
namespace {

// A GPU as its driver describes it.
struct Described {
  const char* name;
  int major, minor, multiprocessors;
  int sm_MHz, memory_MHz, bus_bits;
  int total_MiB;
  const char* card;  // "" for none
};

// Names, sizes and clocks as nvidia-smi and deviceQuery print them.
const std::vector<Described> kGpus = {
    {"NVIDIA A100-SXM4-40GB", 8, 0, 108, 1410, 1215, 5120, 40'536, "a100-40gb"},
    {"NVIDIA A100-PCIE-40GB", 8, 0, 108, 1410, 1215, 5120, 40'536, "a100-40gb"},
    {"NVIDIA A100-SXM4-80GB", 8, 0, 108, 1410, 1593, 5120, 81'251, "a100-80gb"},
    {"NVIDIA A100 80GB PCIe", 8, 0, 108, 1410, 1512, 5120, 81'251, ""},
    {"NVIDIA A100-SXM4-80GB MIG 1g.10gb", 8, 0, 14, 1410, 1593, 5120, 9'728, ""},
    {"NVIDIA A10G", 8, 6, 80, 1710, 6251, 384, 22'731, "a10g"},
    {"NVIDIA A10", 8, 6, 72, 1695, 6251, 384, 22'731, ""},
    {"NVIDIA H100 80GB HBM3", 9, 0, 132, 1980, 2619, 5120, 81'559, "h100-sxm"},
    {"NVIDIA H100 PCIe", 9, 0, 114, 1755, 1593, 5120, 81'559, "h100-pcie"},
    {"NVIDIA H100 NVL", 9, 0, 132, 1785, 2619, 6016, 95'830, ""},
    {"NVIDIA H200", 9, 0, 132, 1980, 3201, 6144, 143'771, "h200"},
    {"NVIDIA H200 NVL", 9, 0, 132, 1785, 3201, 6144, 143'771, ""},
    {"NVIDIA GH200 480GB", 9, 0, 132, 1980, 2619, 6144, 97'871, ""},
    {"NVIDIA L4", 8, 9, 58, 2040, 6251, 192, 23'034, "l4"},
    {"NVIDIA L40", 8, 9, 142, 2490, 9001, 384, 46'068, ""},
    {"NVIDIA L40S", 8, 9, 142, 2520, 9001, 384, 46'068, "l40s"},
    {"NVIDIA GeForce RTX 3090", 8, 6, 82, 1695, 9751, 384, 24'576, "rtx-3090"},
    {"NVIDIA GeForce RTX 3090 Ti", 8, 6, 84, 1860, 10'501, 384, 24'576, ""},
    {"NVIDIA GeForce RTX 4090", 8, 9, 128, 2520, 10'501, 384, 24'564, "rtx-4090"},
    {"NVIDIA GeForce RTX 4090 D", 8, 9, 114, 2520, 10'501, 384, 24'564, ""},
    {"NVIDIA GeForce RTX 4090 Laptop GPU", 8, 9, 76, 2040, 9001, 256, 16'376, ""},
    {"Tesla T4", 7, 5, 40, 1590, 5001, 256, 15'102, "t4"},
    {"NVIDIA T4", 7, 5, 40, 1590, 5001, 256, 15'360, "t4"},
    {"NVIDIA GeForce RTX 5090", 12, 0, 170, 2407, 14'001, 512, 32'607, "rtx-5090"},
    {"NVIDIA GeForce RTX 5080", 12, 0, 84, 2617, 15'001, 256, 16'303, ""},
    {"NVIDIA GB10", 12, 1, 48, 2550, 4266, 256, 122'570, "dgx-spark"},
    {"NVIDIA B200", 10, 0, 148, 1965, 3996, 8192, 183'359, ""},
    {"Graphics Device", 9, 0, 132, 1980, 2619, 5120, 81'559, ""},
    {"", 9, 0, 132, 1980, 2619, 5120, 81'559, ""},
};

GpuProperties properties_of(const Described& d) {
  GpuProperties gpu;
  gpu.name = d.name;
  gpu.arch.major = d.major;
  gpu.arch.minor = d.minor;
  gpu.multiprocessors = d.multiprocessors;
  gpu.sm_clock_kHz = d.sm_MHz * 1000;
  gpu.memory_clock_kHz = d.memory_MHz * 1000;
  gpu.memory_bus_bits = d.bus_bits;
  gpu.total_bytes = std::int64_t{d.total_MiB} << 20;
  gpu.l2_bytes = std::int64_t{50} << 20;
  return gpu;
}

class CudaCardMatch : public ::testing::Test {
 private:
  DataVariable data_;

 protected:
  const std::vector<Card> cards_ = all_cards();
};

TEST_F(CudaCardMatch, FindsEveryCardAndNoOther) {
  std::set<std::string> found;
  for (const Described& d : kGpus) {
    SCOPED_TRACE(d.name);
    const std::optional<Card> card = known_card(properties_of(d), cards_);
    EXPECT_EQ(card ? card->name : "", d.card);
    if (card) found.insert(card->name);
  }
  for (const Card& card : cards_)
    EXPECT_EQ(found.count(card.name), card.vendor == "NVIDIA" ? 1 : 0) << card.name;
}

TEST_F(CudaCardMatch, NeedsNoClocksForAName) {
  for (const Described& d : kGpus) {
    SCOPED_TRACE(d.name);
    GpuProperties gpu = properties_of(d);
    gpu.memory_clock_kHz = 0;
    const std::optional<Card> card = known_card(gpu, cards_);
    // Without a bandwidth a PCIe card might be another than the SXM one of its name.
    const bool doubtful = std::string(d.name) == "NVIDIA A100-PCIE-40GB";
    EXPECT_EQ(card ? card->name : "", doubtful ? "" : d.card);
    EXPECT_EQ(card_of_attributes(gpu), std::nullopt);
  }
}

// The attributes' peaks against the datasheets': clocks differ (an H100 boosts to 1980 MHz, its white paper
// counts 1830), products do not.
TEST_F(CudaCardMatch, AttributesGiveTheDatasheetsPeaks) {
  std::map<std::string, Card> known;
  for (const Card& card : cards_) known[card.name] = card;
  for (const Described& d : kGpus) {
    // An A10G's datasheet has the GeForce cards' half rate; a DGX Spark's memory is the CPU's, too.
    if (*d.card == '\0' || std::string(d.card) == "a10g" || std::string(d.card) == "dgx-spark") continue;
    SCOPED_TRACE(d.name);
    const std::optional<Card> made = card_of_attributes(properties_of(d));
    ASSERT_TRUE(made);
    const Card& card = known[d.card];
    EXPECT_EQ(made->architecture.rfind(card.architecture.substr(0, 3), 0), 0U) << card.architecture;
    EXPECT_NEAR(made->bandwidth_GBps / card.bandwidth_GBps, 1, 0.03);
    EXPECT_EQ(made->peaks.size(), card.peaks.size());
    for (const auto& [type, peak] : card.peaks) {
      ASSERT_EQ(made->peaks.count(type), 1U) << compute_type_name(type);
      EXPECT_NEAR(made->peaks.at(type).tflops / peak.tflops, 1, 0.1) << compute_type_name(type);
    }
    EXPECT_EQ(made->achievable.class_name, card.achievable.class_name);
    EXPECT_EQ(made->achievable.bandwidth_share, card.achievable.bandwidth_share);
    EXPECT_EQ(made->achievable.compute_share, card.achievable.compute_share);
    EXPECT_EQ(made->achievable.kernel_us, card.achievable.kernel_us);
    EXPECT_EQ(made->achievable.spread, card.achievable.spread);
    EXPECT_TRUE(made->achievable.provisional);
  }
}

TEST_F(CudaCardMatch, AnUnknownCardIsMadeOfItsAttributes) {
  for (const Described& d : kGpus) {
    const std::optional<CardMatch> match = match_card(properties_of(d), cards_);
    ASSERT_TRUE(match) << d.name;
    EXPECT_EQ(match->from_attributes, *d.card == '\0') << d.name;
  }
  GpuProperties future = properties_of(kGpus.front());
  future.name = "NVIDIA X1";
  future.arch.major = 99;
  EXPECT_FALSE(match_card(future, cards_));
}

}  // namespace
}  // namespace memwall::cuda
