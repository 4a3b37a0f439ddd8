// x86's own multiply-adds: dot products of bytes and of bf16, f16 arithmetic, and AMX's tiles.
#include "kernels/cpu/arithmetic_parts.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

namespace memwall::cpu {
namespace {

constexpr std::size_t kChains256 = 12;
constexpr std::size_t kChains512 = 24;

// The compiler must take each chain's sum for a new one, or it finds that the chains are all the same.
#define MEMWALL_RENEW(vector) asm volatile("" : "+x"(vector))

template <class Vector, class T, std::size_t N>
__attribute__((always_inline)) inline void load(Vector& vector, const std::array<T, N>& pattern) {
  static constexpr std::size_t kBytes = sizeof(Vector) < 64 ? sizeof(Vector) : 64;
  const auto all = repeated(pattern);
  std::memcpy(&vector, all.data(), kBytes);
}

__attribute__((target("avx2,avxvnni"))) double part_int8_avxvnni(std::int64_t rounds) {
  __m256i weights;
  __m256i x;
  load(weights, kByteWeights);
  load(x, kByteInputs);
  __m256i sums[kChains256];
  MEMWALL_UNROLL
  for (__m256i& sum : sums) {
    sum = _mm256_setzero_si256();
    MEMWALL_RENEW(sum);
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
    MEMWALL_UNROLL
    for (std::size_t c = 0; c < kChains256; ++c) sums[c] = _mm256_dpbusd_avx_epi32(sums[c], weights, x);
  }
  MEMWALL_UNROLL
  for (std::size_t c = 1; c < kChains256; ++c) sums[0] = _mm256_add_epi32(sums[0], sums[c]);
  std::array<std::int32_t, 8> lanes{};
  std::memcpy(lanes.data(), &sums[0], sizeof lanes);
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) double part_bf16_avx512(std::int64_t rounds) {
  __m512bh a;
  __m512bh b;
  load(a, kFactorsBf16);
  load(b, kInversesBf16);
  __m512 sums[kChains512];
  MEMWALL_UNROLL
  for (__m512& sum : sums) {
    sum = _mm512_setzero_ps();
    MEMWALL_RENEW(sum);
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
    MEMWALL_UNROLL
    for (std::size_t c = 0; c < kChains512; ++c) sums[c] = _mm512_dpbf16_ps(sums[c], a, b);
  }
  MEMWALL_UNROLL
  for (std::size_t c = 1; c < kChains512; ++c) sums[0] = _mm512_add_ps(sums[0], sums[c]);
  std::array<float, 16> lanes{};
  std::memcpy(lanes.data(), &sums[0], sizeof lanes);
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

#ifdef __FLT16_MAX__
#define MEMWALL_HAS_FLOAT16 1
// Sums of f16 are whole numbers here, exact to 2048.
constexpr std::int64_t kRoundsInF16 = 2048;

__attribute__((target("avx512f,avx512bw,avx512vl,avx512fp16"))) double part_f16_avx512(std::int64_t rounds) {
  __m512h a;
  __m512h b;
  load(a, kFactorsF16);
  load(b, kInversesF16);
  __m512h sums[kChains512];
  MEMWALL_UNROLL
  for (__m512h& sum : sums) {
    sum = _mm512_setzero_ph();
    MEMWALL_RENEW(sum);
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
    MEMWALL_UNROLL
    for (std::size_t c = 0; c < kChains512; ++c) sums[c] = _mm512_fmadd_ph(a, b, sums[c]);
  }
  __m512 all = _mm512_setzero_ps();
  MEMWALL_UNROLL
  for (std::size_t c = 0; c < kChains512; ++c) {
    __m256i halves[2];
    std::memcpy(halves, &sums[c], sizeof halves);
    // Of all lanes, but by a mask: GCC 12 warns of its own header's plain one.
    for (const __m256i& half : halves) all = _mm512_add_ps(all, _mm512_maskz_cvtph_ps(0xffff, half));
  }
  std::array<float, 16> lanes{};
  std::memcpy(lanes.data(), &all, sizeof lanes);
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}
#endif

// Six accumulators of 16 × 16, and one tile of either operand (Intel's manual, volume 1, chapter 18).
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr std::int64_t kTiles = 6;

// The rows of the left tile repeat the pattern along its inner dimension; the right tile holds `Group`
// neighbours of that dimension a column, so that its row r holds elements Group r to Group (r + 1).
template <class T, std::size_t N>
void fill_tiles(const std::array<T, N>& left, const std::array<T, N>& right, void* a, void* b) {
  constexpr std::size_t kRow = 64 / sizeof(T);
  constexpr std::size_t kGroup = 4 / sizeof(T);
  std::array<T, 16 * kRow> rows{};
  std::array<T, 16 * kRow> columns{};
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t i = 0; i < kRow; ++i) {
      rows[row * kRow + i] = left[i % N];
      columns[row * kRow + i] = right[(row * kGroup + i % kGroup) % N];
    }
  }
  std::memcpy(a, rows.data(), 1024);
  std::memcpy(b, columns.data(), 1024);
}

template <class T>
double sum_of_tiles(const std::array<T, kTiles * 256>& tiles) {
  return std::accumulate(tiles.begin(), tiles.end(), 0.0);
}

__attribute__((target("amx-tile,amx-int8"))) double part_int8_amx(std::int64_t rounds) {
  alignas(64) std::int8_t a[1024];
  alignas(64) std::int8_t b[1024];
  fill_tiles(kByteWeights, kByteInputs, a, b);
  alignas(64) std::array<std::int32_t, kTiles * 256> tiles{};
  const TileConfig config;
  _tile_loadconfig(&config);
  _tile_loadd(6, a, 64);
  _tile_loadd(7, b, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (std::int64_t i = 0; i < rounds; ++i) {
    _tile_dpbusd(0, 6, 7);
    _tile_dpbusd(1, 6, 7);
    _tile_dpbusd(2, 6, 7);
    _tile_dpbusd(3, 6, 7);
    _tile_dpbusd(4, 6, 7);
    _tile_dpbusd(5, 6, 7);
  }
  _tile_stored(0, tiles.data(), 64);
  _tile_stored(1, tiles.data() + 256, 64);
  _tile_stored(2, tiles.data() + 512, 64);
  _tile_stored(3, tiles.data() + 768, 64);
  _tile_stored(4, tiles.data() + 1024, 64);
  _tile_stored(5, tiles.data() + 1280, 64);
  _tile_release();
  return sum_of_tiles(tiles);
}

__attribute__((target("amx-tile,amx-bf16"))) double part_bf16_amx(std::int64_t rounds) {
  alignas(64) std::uint16_t a[512];
  alignas(64) std::uint16_t b[512];
  fill_tiles(kFactorsBf16, kInversesBf16, a, b);
  alignas(64) std::array<float, kTiles * 256> tiles{};
  const TileConfig config;
  _tile_loadconfig(&config);
  _tile_loadd(6, a, 64);
  _tile_loadd(7, b, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (std::int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_stored(0, tiles.data(), 64);
  _tile_stored(1, tiles.data() + 256, 64);
  _tile_stored(2, tiles.data() + 512, 64);
  _tile_stored(3, tiles.data() + 768, 64);
  _tile_stored(4, tiles.data() + 1024, 64);
  _tile_stored(5, tiles.data() + 1280, 64);
  _tile_release();
  return sum_of_tiles(tiles);
}

// Bits of CPUID's leaf 7 (Intel's manual, volume 2A, CPUID), where the system keeps the registers' state.
struct Features {
  bool avx_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool amx_int8 = false;
  bool amx_bf16 = false;
};

Features features() {
  Features has;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  const bool avx512 = __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return has;
  has.avx512_fp16 = avx512 && (d >> 23 & 1) != 0;
  const bool tiles = (d >> 24 & 1) != 0;
  has.amx_bf16 = tiles && (d >> 22 & 1) != 0;
  has.amx_int8 = tiles && (d >> 25 & 1) != 0;
  if (a < 1 || __get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return has;
  has.avx_vnni = avx2 && (a >> 4 & 1) != 0;
  has.avx512_bf16 = avx512 && (a >> 5 & 1) != 0;
  return has;
}

// Linux grants a process the tiles' state on request (arch/x86/include/uapi/asm/prctl.h).
bool tiles_granted() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  static const bool granted = ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

constexpr std::int64_t kTileProducts8 = kTiles * 16 * 16 * 64;
constexpr std::int64_t kTileProducts16 = kTiles * 16 * 16 * 32;

}  // namespace

void add_own_ways(Multiply type, std::vector<MultiplyWay>& ways) {
  const Features has = features();
  if (type == Multiply::int8) {
    if (has.avx_vnni) {
      ways.push_back({"vpdpbusd, AVX-VNNI", kChains256 * 32, [](std::int64_t rounds) {
                        return in_parts(rounds, kRoundsAtOnce, part_int8_avxvnni);
                      }});
    }
    if (has.amx_int8 && tiles_granted()) {
      ways.push_back({"tdpbusd, AMX", kTileProducts8,
                      [](std::int64_t rounds) { return in_parts(rounds, kRoundsAtOnce, part_int8_amx); }});
    }
  }
  if (type == Multiply::bf16) {
    if (has.avx512_bf16) {
      ways.push_back({"vdpbf16ps, AVX-512", kChains512 * 32,
                      [](std::int64_t rounds) { return in_parts(rounds, kRoundsAtOnce, part_bf16_avx512); }});
    }
    if (has.amx_bf16 && tiles_granted()) {
      ways.push_back({"tdpbf16ps, AMX", kTileProducts16,
                      [](std::int64_t rounds) { return in_parts(rounds, kRoundsAtOnce, part_bf16_amx); }});
    }
  }
#ifdef MEMWALL_HAS_FLOAT16
  if (type == Multiply::f16 && has.avx512_fp16) {
    ways.push_back({"vfmaddph, AVX-512", kChains512 * 32,
                    [](std::int64_t rounds) { return in_parts(rounds, kRoundsInF16, part_f16_avx512); }});
  }
#endif
}

}  // namespace memwall::cpu

#elif !defined(__aarch64__) || !defined(__linux__)

namespace memwall::cpu {

void add_own_ways(Multiply, std::vector<MultiplyWay>&) {}

}  // namespace memwall::cpu

#endif
