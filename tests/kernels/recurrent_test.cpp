#include "kernels/cpu/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "support.h"

namespace memwall::cpu {
namespace {

double wide(float value) { return static_cast<double>(value); }

std::vector<std::uint16_t> narrowed(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), f32_to_bf16);
  return bits;
}

// A recurrence on random operands, each allocation as long as its data and not a byte more.
class RecurrenceCase {
 public:
  RecurrenceCase(StateUpdate update, std::int64_t element_bytes, std::int64_t elements, std::int64_t width,
                 std::int64_t head_rows)
      : rows_((elements + width - 1) / width),
        heads_((rows_ + head_rows - 1) / head_rows),
        state32_(random_floats(elements, 1), 1),
        state16_(narrowed(random_floats(elements, 1)), 1),
        decay_(random_floats(rows_, 2, 0.3F, 0.9F), 1),
        beta_(random_floats(heads_, 3, 0.2F, 0.8F), 2),
        rates_(narrowed(random_floats(elements, 4, -2.0F, -0.1F)), 1),
        k_(random_floats(heads_ * width, 5), 3),
        q_(random_floats(heads_ * width, 6), 1),
        v_(random_floats(rows_, 7), 1),
        y_(std::vector<float>(static_cast<std::size_t>(rows_), 99.0F), 1) {
    op = {.update = update,
          .element_bytes = element_bytes,
          .state = element_bytes == 4 ? static_cast<void*>(state32_.data()) : state16_.data(),
          .elements = elements,
          .width = width,
          .head_rows = head_rows,
          .decay = decay_.data(),
          .beta = beta_.data(),
          .rates = rates_.data(),
          .k = k_.data(),
          .q = q_.data(),
          .v = v_.data(),
          .y = y_.data()};
  }

  std::int64_t rows() const { return rows_; }
  float* k() { return k_.data(); }
  float* v() { return v_.data(); }
  std::vector<float> y() { return {y_.data(), y_.data() + rows_}; }
  std::vector<float> state() {
    std::vector<float> values;
    for (std::int64_t i = 0; i < op.elements; ++i)
      values.push_back(op.element_bytes == 4 ? state32_.data()[i] : bf16_to_f32(state16_.data()[i]));
    return values;
  }

  // The next state and output of one row in float64.
  struct Row {
    std::vector<double> state;
    double y = 0;
    double magnitude = 0;  // the sum of |S q|
  };
  Row expected(const std::vector<float>& before, std::int64_t row) {
    const std::int64_t head = row / op.head_rows;
    const std::int64_t begin = row * op.width;
    const std::int64_t n = std::min(op.width, op.elements - begin);
    const bool selective = op.update == StateUpdate::selective;
    const double decay = wide(decay_.data()[selective ? row : head]);
    double value = wide(v_.data()[row]) * (selective ? decay : 1.0);
    if (op.update == StateUpdate::delta) {
      double dot = 0.0;
      for (std::int64_t j = 0; j < n; ++j) dot += wide(before[begin + j]) * wide(op.k[head * op.width + j]);
      value = wide(beta_.data()[head]) * (value - decay * dot);
    }
    Row result;
    for (std::int64_t j = 0; j < n; ++j) {
      const double factor = selective ? std::exp(decay * wide(bf16_to_f32(rates_.data()[begin + j]))) : decay;
      const double s = factor * wide(before[begin + j]) + value * wide(op.k[head * op.width + j]);
      result.state.push_back(s);
      const double product = s * wide(op.q[head * op.width + j]);
      result.y += product;
      result.magnitude += std::fabs(product);
    }
    return result;
  }

  Recurrence op;

 private:
  std::int64_t rows_;
  std::int64_t heads_;
  Exact<float> state32_;
  Exact<std::uint16_t> state16_;
  Exact<float> decay_;
  Exact<float> beta_;
  Exact<std::uint16_t> rates_;
  Exact<float> k_;
  Exact<float> q_;
  Exact<float> v_;
  Exact<float> y_;
};

constexpr StateUpdate kUpdates[] = {StateUpdate::decay, StateUpdate::delta, StateUpdate::selective};

class RecurrenceKernel : public OnEverySet {};
MEMWALL_ON_EVERY_SET(RecurrenceKernel);

TEST_P(RecurrenceKernel, HoldsToFloat64OnOddShapes) {
  struct Shape {
    std::int64_t elements, width, head_rows;
  };
  for (const StateUpdate update : kUpdates) {
    for (const std::int64_t bytes : {2, 4}) {
      for (const Shape& shape :
           {Shape{1, 1, 1}, Shape{5, 8, 2}, Shape{23 * 16, 16, 5}, Shape{11 * 33, 33, 64},
            Shape{9 * 128 + 77, 128, 4}, Shape{64 * 65, 65, 7}}) {
        RecurrenceCase c(update, bytes, shape.elements, shape.width, shape.head_rows);
        const std::vector<float> before = c.state();
        const std::int64_t first = c.rows() / 3;
        update_state(c.op, first, c.rows());
        const std::vector<float> after = c.state();
        const std::vector<float> y = c.y();
        for (std::int64_t row = 0; row < c.rows(); ++row) {
          const std::int64_t begin = row * shape.width;
          const RecurrenceCase::Row expected = c.expected(before, row);
          for (std::size_t j = 0; j < expected.state.size(); ++j) {
            if (row < first) {
              ASSERT_EQ(after[begin + j], before[begin + j]);
              continue;
            }
            // Half a unit in the last place of bf16, or a few of f32's; the delta rule's value carries the
            // error of its dot product.
            const double unit = bytes == 2 ? 1.0 / 256 : 1e-6;
            ASSERT_NEAR(wide(after[begin + j]), expected.state[j], unit * std::fabs(expected.state[j]) + 2e-5)
                << shape.width << " " << row;
          }
          if (row < first) {
            ASSERT_EQ(y[row], 99.0F);
          } else {
            ASSERT_NEAR(wide(y[row]), expected.y, 1e-5 * (1.0 + expected.magnitude)) << shape.width;
          }
        }
      }
    }
  }
}

TEST_P(RecurrenceKernel, ASplitDoesNotChangeABit) {
  for (const StateUpdate update : kUpdates) {
    RecurrenceCase whole(update, 4, 37 * 48 + 5, 48, 10);
    RecurrenceCase parts(update, 4, 37 * 48 + 5, 48, 10);
    update_state(whole.op, 0, whole.rows());
    for (std::int64_t row = 0; row < parts.rows(); row += 3)
      update_state(parts.op, row, std::min(row + 3, parts.rows()));
    EXPECT_EQ(whole.state(), parts.state());
    EXPECT_EQ(whole.y(), parts.y());
  }
}

// A bf16 state is the f32 one rounded to nearest even: no element is further off than that.
TEST_P(RecurrenceKernel, Bf16StatesAreRoundedToNearestEven) {
  RecurrenceCase narrow(StateUpdate::decay, 2, 1000, 50, 5);
  const std::vector<float> before = narrow.state();
  update_state(narrow.op, 0, narrow.rows());
  const std::vector<float> after = narrow.state();
  for (std::int64_t row = 0; row < narrow.rows(); ++row) {
    const RecurrenceCase::Row expected = narrow.expected(before, row);
    for (std::size_t j = 0; j < expected.state.size(); ++j) {
      const double half_unit = std::fabs(expected.state[j]) / 256 / 2 * 2;
      ASSERT_LE(std::fabs(wide(after[row * 50 + j]) - expected.state[j]), half_unit + 1e-6);
    }
  }
}

TEST_P(RecurrenceKernel, NanAndInfinityStayInTheirRow) {
  for (const StateUpdate update : kUpdates) {
    for (const std::int64_t bytes : {2, 4}) {
      float full = 0.0F;  // a NaN that rounding its bits up would turn into -0
      const std::uint32_t ones = 0x7FFFFFFF;
      std::memcpy(&full, &ones, sizeof full);
      for (const float bad : {std::nanf(""), full, std::numeric_limits<float>::infinity()}) {
        RecurrenceCase c(update, bytes, 9 * 21, 21, 9);
        c.v()[4] = bad;
        update_state(c.op, 0, c.rows());
        const std::vector<float> after = c.state();
        for (std::int64_t i = 0; i < c.op.elements; ++i)
          EXPECT_EQ(std::isfinite(after[i]), i / 21 != 4) << i << " by " << bytes;
        const std::vector<float> y = c.y();
        for (std::int64_t row = 0; row < c.rows(); ++row) EXPECT_EQ(std::isfinite(y[row]), row != 4);
        c.k()[20] = bad;
        update_state(c.op, 0, c.rows());
        EXPECT_FALSE(std::isfinite(c.state()[20]));
        EXPECT_FALSE(std::isfinite(c.y()[0]));
      }
    }
  }
}

// Launched again and again on the same inputs, as a benchmark does: the state settles at v k / (1 - a), far
// from overflow and from the subnormals that would slow it down.
TEST_P(RecurrenceKernel, RepeatedStepsSettle) {
  for (const StateUpdate update : kUpdates) {
    for (const std::int64_t bytes : {2, 4}) {
      RecurrenceCase c(update, bytes, 8 * 32, 32, 4);
      for (std::int64_t i = 0; i < 2 * 32; ++i) c.k()[i] = (i % 2 == 0 ? 1.0F : -1.0F) / std::sqrt(32.0F);
      for (std::int64_t i = 0; i < c.rows(); ++i) c.v()[i] = i % 2 == 0 ? 0.5F : -0.75F;
      for (int step = 0; step < 3000; ++step) update_state(c.op, 0, c.rows());
      for (const float s : c.state()) {
        EXPECT_LT(std::fabs(s), 10.0F);
        EXPECT_GT(std::fabs(s), 1e-3F);
      }
    }
  }
}

TEST(RecurrenceRefusals, ARangeOrSizeOutOfBounds) {
  RecurrenceCase c(StateUpdate::decay, 4, 10, 4, 2);
  EXPECT_EQ(recurrence_rows(c.op), 3);
  EXPECT_THROW(update_state(c.op, 0, 4), std::invalid_argument);
  EXPECT_THROW(update_state(c.op, -1, 2), std::invalid_argument);
  EXPECT_THROW(update_state(c.op, 2, 1), std::invalid_argument);
  update_state(c.op, 3, 3);
  c.op.element_bytes = 8;
  EXPECT_THROW(update_state(c.op, 0, 1), std::invalid_argument);
}

TEST_P(RecurrenceKernel, ShortConvShiftsAndHoldsToFloat64) {
  for (const std::int64_t taps : {1, 2, 3, 4, 7}) {
    for (const std::int64_t channels : {1, 15, 16, 37, 130}) {
      Exact<std::uint16_t> state(narrowed(random_floats((taps - 1) * channels, 1)), 1);
      Exact<std::uint16_t> weights(narrowed(random_floats(taps * channels, 2)), 1);
      Exact<float> x(random_floats(channels, 3), 1);
      Exact<float> y(std::vector<float>(static_cast<std::size_t>(channels), 99.0F), 1);
      const std::vector<std::uint16_t> before(state.data(), state.data() + (taps - 1) * channels);
      const std::int64_t first = channels / 3;
      short_conv({.channels = channels,
                  .taps = taps,
                  .state = state.data(),
                  .weights = weights.data(),
                  .x = x.data(),
                  .y = y.data()},
                 first, channels);
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0.0;
        for (std::int64_t t = 0; t < taps; ++t) {
          const double input = t + 1 < taps ? wide(bf16_to_f32(before[t * channels + c])) : wide(x.data()[c]);
          sum += input * wide(bf16_to_f32(weights.data()[t * channels + c]));
        }
        ASSERT_NEAR(wide(y.data()[c]), c < first ? 99.0 : sum, 1e-6) << taps << " " << channels;
        for (std::int64_t t = 0; t + 1 < taps; ++t) {
          const std::uint16_t shifted =
              t + 2 < taps ? before[(t + 1) * channels + c] : f32_to_bf16(x.data()[c]);
          ASSERT_EQ(state.data()[t * channels + c], c < first ? before[t * channels + c] : shifted);
        }
      }
    }
  }
}

TEST(RecurrenceRefusals, AConvolutionWithoutTapsOrOutOfRange) {
  ShortConv op{.channels = 4, .taps = 0};
  EXPECT_THROW(short_conv(op, 0, 4), std::invalid_argument);
  op.taps = 2;
  EXPECT_THROW(short_conv(op, 0, 5), std::invalid_argument);
  EXPECT_THROW(short_conv(op, 2, 1), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cpu
