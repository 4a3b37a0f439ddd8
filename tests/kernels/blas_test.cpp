#include "kernels/cpu/blas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "kernels/cpu/blas_library.h"
#include "support.h"
#include "tests/support.h"

namespace memwall::cpu {
namespace {

double element(const std::vector<float>& a, std::int64_t i) {
  return static_cast<double>(a[static_cast<std::size_t>(i)]);
}

void check(bool transposed, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t slack) {
  const std::int64_t lda = k + slack;
  const std::int64_t ldb = (transposed ? k : n) + slack;
  const std::int64_t ldc = n + slack;
  const std::vector<float> a = random_floats(m * lda, 1);
  const std::vector<float> b = random_floats((transposed ? n : k) * ldb, 2);
  // NaN: the old C must not be read, not even times zero. Slack must not be written.
  std::vector<float> c(static_cast<std::size_t>(m * ldc), std::nanf(""));
  sgemm(transposed, m, n, k, a.data(), lda, b.data(), ldb, c.data(), ldc);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      double magnitude = 0.0;
      for (std::int64_t l = 0; l < k; ++l) {
        const double product = element(a, i * lda + l) * element(b, transposed ? j * ldb + l : l * ldb + j);
        sum += product;
        magnitude += std::fabs(product);
      }
      const double tolerance = 4.0 * std::sqrt(static_cast<double>(k)) * std::ldexp(magnitude, -24);
      ASSERT_NEAR(element(c, i * ldc + j), sum, tolerance) << m << " " << n << " " << k;
    }
    for (std::int64_t j = n; j < ldc; ++j) ASSERT_TRUE(std::isnan(element(c, i * ldc + j)));
  }
}

TEST(Blas, SgemmIsRowMajor) {
  for (const bool transposed : {false, true}) {
    for (const std::int64_t m : {1, 2, 5, 64}) {
      for (const std::int64_t n : {1, 3, 17, 65}) {
        for (const std::int64_t k : {1, 7, 128}) {
          check(transposed, m, n, k, 0);
          check(transposed, m, n, k, 3);
        }
      }
    }
  }
}

TEST(Blas, SgemvIsRowMajor) {
  for (const std::int64_t m : {1, 3, 17, 65}) {
    for (const std::int64_t k : {1, 7, 128}) {
      const std::int64_t lda = k + 3;
      const std::vector<float> a = random_floats(m * lda, 1);
      const std::vector<float> x = random_floats(k, 2);
      std::vector<float> y(static_cast<std::size_t>(m), std::nanf(""));  // must not be read
      sgemv(m, k, a.data(), lda, x.data(), y.data());
      for (std::int64_t i = 0; i < m; ++i) {
        double sum = 0.0;
        double magnitude = 0.0;
        for (std::int64_t l = 0; l < k; ++l) {
          const double product = element(a, i * lda + l) * element(x, l);
          sum += product;
          magnitude += std::fabs(product);
        }
        const double tolerance = 4.0 * std::sqrt(static_cast<double>(k)) * std::ldexp(magnitude, -24);
        ASSERT_NEAR(element(y, i), sum, tolerance) << m << " " << k;
      }
    }
  }
}

TEST(Blas, EmptyProducts) {
  float c[2] = {5.0F, 5.0F};
  sgemm(true, 1, 2, 0, nullptr, 1, nullptr, 1, c, 2);
  EXPECT_EQ(c[0], 0.0F);
  EXPECT_EQ(c[1], 0.0F);
  float y[2] = {5.0F, 5.0F};
  sgemv(2, 0, nullptr, 1, nullptr, y);
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[1], 0.0F);
  sgemv(0, 1, nullptr, 1, nullptr, nullptr);
  sgemm(true, 0, 2, 1, nullptr, 1, nullptr, 1, nullptr, 2);
  sgemm(true, 1, 0, 1, nullptr, 1, nullptr, 1, nullptr, 1);
}

TEST(Blas, RefusesSizesPast32Bits) {
  const std::int64_t large = std::int64_t{1} << 31;
  float v = 0.0F;
  EXPECT_THROW(sgemm(true, large, 1, 1, &v, 1, &v, 1, &v, 1), std::length_error);
  EXPECT_THROW(sgemm(true, 1, large, 1, &v, 1, &v, 1, &v, 1), std::length_error);
  EXPECT_THROW(sgemm(true, 1, 1, large, &v, 1, &v, 1, &v, 1), std::length_error);
  EXPECT_THROW(sgemm(true, 1, 1, 1, &v, large, &v, 1, &v, 1), std::length_error);
  EXPECT_THROW(sgemm(true, 1, 1, 1, &v, 1, &v, large, &v, 1), std::length_error);
  EXPECT_THROW(sgemm(true, 1, 1, 1, &v, 1, &v, 1, &v, large), std::length_error);
  EXPECT_THROW(sgemv(large, 1, &v, 1, &v, &v), std::length_error);
  EXPECT_THROW(sgemv(1, large, &v, 1, &v, &v), std::length_error);
  EXPECT_THROW(sgemv(1, 1, &v, large, &v, &v), std::length_error);
  EXPECT_THROW(sgemm(true, -1, 1, 1, &v, 1, &v, 1, &v, 1), std::length_error);
}

TEST(Blas, SaysWhatItIs) { EXPECT_FALSE(blas_description().empty()); }

TEST(BlasLibrary, SaysWhyThereIsNone) {
  const BlasLibrary none = load_blas({"libno-such-blas.so.0", "libno-other.so"});
  EXPECT_EQ(none.sgemm, nullptr);
  EXPECT_EQ(none.sgemv, nullptr);
  EXPECT_EQ(none.description, "");
  EXPECT_THAT(none.why_not, testing::HasSubstr("libno-such-blas.so.0"));
  EXPECT_THAT(none.why_not, testing::HasSubstr("MEMWALL_BLAS"));
}

TEST(BlasLibrary, PassesOverALibraryThatIsNoBlas) {
  EXPECT_EQ(load_blas({"libm.so.6"}).sgemm, nullptr);
  EXPECT_THAT(load_blas({"libm.so.6"}).why_not, testing::HasSubstr("libm.so.6 has no cblas_sgemm"));
}

TEST(BlasLibrary, TheEnvironmentIsAsItWas) {
  const EnvironmentVariable threads("OPENBLAS_NUM_THREADS", "7");
  load_blas({"libno-such-blas.so.0"});
  EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "7");
}

}  // namespace
}  // namespace memwall::cpu
