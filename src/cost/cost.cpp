#include "cost/cost.h"

#include <algorithm>
#include <cmath>

namespace memwall {
namespace {

constexpr double kActivationBytes = 2;  // activations are 16-bit

double as_double(std::int64_t value) { return static_cast<double>(value); }

double rows_of(const Workload& workload, bool last_token_only) {
  return as_double(last_token_only ? workload.batch : workload.rows());
}

double flops_of_rows(const LinearWork& linear, double rows) {
  return 2 * rows * as_double(linear.out) * as_double(linear.in) +
         (linear.bias ? rows * as_double(linear.out) : 0);
}

// What depends on the rows: activations in and out, a multiply-add a weight, an add a bias.
void add_rows(Cost& cost, const LinearWork& linear, double rows) {
  cost.activation_bytes += rows * (as_double(linear.in) + as_double(linear.out)) * kActivationBytes;
  cost.flops += flops_of_rows(linear, rows);
}

struct CostOf {
  const Workload& workload;

  Cost operator()(const LinearWork& linear) const {
    Cost cost;
    cost.weight_bytes = as_double(linear.weight_bytes());
    add_rows(cost, linear, rows_of(workload, linear.last_token_only));
    return cost;
  }

  Cost operator()(const RouterWork& router) const { return (*this)(router.linear); }

  Cost operator()(const ExpertWork& expert) const {
    Cost cost;
    const double tokens = as_double(workload.rows());
    cost.experts_touched = experts_touched(expert.total, expert.per_token, tokens);
    cost.weight_bytes = cost.experts_touched * as_double(expert.each.weight_bytes());
    cost.weight_bytes_least = as_double(least_experts(expert)) * as_double(expert.each.weight_bytes());
    add_rows(cost, expert.each, tokens * as_double(expert.per_token));
    return cost;
  }

  Cost operator()(const AttentionWork& attention) const {
    Cost cost;
    cost.weight_bytes = as_double(attention.weight_bytes);
    const double batch = as_double(workload.batch);
    const double rows = as_double(workload.rows());
    const double token_bytes =
        as_double(attention.kv_heads) * as_double(kv_vector_bytes(attention.kv, attention.d_k) +
                                                  kv_vector_bytes(attention.kv, attention.d_v));
    const double q_and_y = as_double(attention.heads) * as_double(attention.d_k + attention.d_v);
    const double new_kv = as_double(attention.kv_heads) * as_double(attention.d_k + attention.d_v);
    cost.activation_bytes = rows * (q_and_y + (attention.shared ? 0 : new_kv)) * kActivationBytes;
    const double reach = as_double(effective_context(attention, workload.context));
    double pairs = reach;
    if (workload.phase == Phase::decode) {
      cost.kv_read_bytes = batch * reach * token_bytes;
      cost.kv_write_bytes = attention.shared ? 0 : batch * token_bytes;
    } else {
      // A prompt's K and V are written for the tokens a later step can reach; read back they may stay on
      // chip, so the reading is an activation's.
      pairs = attention_pairs(attention, workload.context);
      cost.kv_write_bytes =
          attention.shared ? 0 : batch * as_double(tokens_kept(attention, workload.context)) * token_bytes;
      cost.activation_bytes += rows * token_bytes;
    }
    cost.flops = 2 * batch * q_and_y * pairs;
    return cost;
  }

  Cost operator()(const LatentWork& work) const {
    const LatentState& s = work.state;
    Cost cost;
    cost.weight_bytes = as_double(work.weight_bytes);
    const double batch = as_double(workload.batch);
    const double rows = as_double(workload.rows());
    const double entry = as_double(entry_bytes(s, work.kv));
    const double kept = as_double(entries_kept(s, workload.context));
    const double reach = s.top_k > 0 ? std::min(kept, as_double(s.top_k)) : kept;
    // Scores over the whole latent, sums over its rank (DeepSeek-V2, appendix C).
    const double absorbed = as_double(s.heads) * as_double(2 * s.rank + s.rope);
    const double written = 1 / as_double(s.every);
    cost.activation_bytes = rows * (absorbed + as_double(s.rank + s.rope)) * kActivationBytes;
    if (workload.phase == Phase::decode) {
      cost.kv_read_bytes = batch * reach * entry;
      cost.kv_write_bytes = batch * entry * written;
      cost.flops = 2 * batch * absorbed * reach;
    } else {
      // The latents are expanded to K and V of every head (by kv_b_proj, a linear of its own).
      const double expanded =
          s.d_nope > 0 ? as_double(s.heads) * as_double(s.d_nope + s.rope + s.d_v) : absorbed;
      const double limit = s.window > 0 ? as_double(s.window) : as_double(s.top_k);
      const double pairs =
          causal_pairs(workload.context, static_cast<std::int64_t>(limit) * s.every) / as_double(s.every);
      cost.kv_write_bytes = batch * kept * entry;
      cost.activation_bytes += rows * entry * written;
      cost.flops = 2 * batch * expanded * pairs;
    }
    return cost;
  }

  Cost operator()(const IndexerWork& work) const {
    const IndexerState& s = work.state;
    Cost cost;
    cost.weight_bytes = as_double(work.weight_bytes);
    const double batch = as_double(workload.batch);
    const double rows = as_double(workload.rows());
    const double key = as_double(entry_bytes(s, work.kv));
    const double keys = as_double(entries_kept(s, workload.context));
    const double queries = as_double(s.heads) * as_double(s.width);
    cost.activation_bytes = rows * (queries + as_double(s.width)) * kActivationBytes;
    double pairs = batch * keys;
    if (workload.phase == Phase::decode) {
      cost.kv_read_bytes = batch * keys * key;
      cost.kv_write_bytes = batch * key / as_double(s.every);
    } else {
      pairs = batch * causal_pairs(workload.context, 0) / as_double(s.every);
      cost.kv_write_bytes = batch * keys * key;
      cost.activation_bytes += batch * keys * key;
    }
    cost.flops = 2 * pairs * queries;
    return cost;
  }

  // The state is read and written once a step, in prefill once a prompt.
  Cost operator()(const RecurrentWork& work) const {
    Cost cost;
    cost.weight_bytes = as_double(work.weight_bytes);
    const double once = workload.phase == Phase::decode ? 2 : 1;
    cost.state_bytes = once * as_double(workload.batch) * as_double(work.state.bytes());
    cost.flops = as_double(workload.rows()) * as_double(work.state.flops);
    return cost;
  }

  Cost operator()(const ElementwiseWork& work) const {
    Cost cost;
    const double elements =
        rows_of(workload, work.last_token_only) * as_double(work.rows_per_token) * as_double(work.width);
    cost.weight_bytes = as_double(work.weight_bytes());
    cost.activation_bytes = elements * as_double(work.inputs + 1) * kActivationBytes;
    cost.flops = elements * as_double(work.flops_per_element);
    return cost;
  }

  Cost operator()(const EmbeddingWork& table) const {
    Cost cost;
    const double row_bytes = as_double(storage_bytes(table.format, 1, table.width));
    cost.activation_bytes =
        as_double(workload.rows()) * (row_bytes + as_double(table.width) * kActivationBytes);
    return cost;
  }
};

}  // namespace

Cost Cost::times(double count) const {
  Cost cost = *this;
  for (double* part : {&cost.weight_bytes, &cost.weight_bytes_least, &cost.kv_read_bytes,
                       &cost.kv_write_bytes, &cost.state_bytes, &cost.activation_bytes, &cost.flops}) {
    *part *= count;
  }
  return cost;
}

Cost& Cost::operator+=(const Cost& other) {
  weight_bytes += other.weight_bytes;
  weight_bytes_least += other.weight_bytes_least;
  kv_read_bytes += other.kv_read_bytes;
  kv_write_bytes += other.kv_write_bytes;
  state_bytes += other.state_bytes;
  activation_bytes += other.activation_bytes;
  flops += other.flops;
  return *this;
}

Cost cost_of(const Work& work, const Workload& workload) {
  Cost cost = std::visit(CostOf{workload}, work);
  if (!std::holds_alternative<ExpertWork>(work)) cost.weight_bytes_least = cost.weight_bytes;
  return cost;
}

double linear_flops(const LinearWork& linear, std::int64_t rows) {
  return flops_of_rows(linear, as_double(rows));
}

double experts_touched(std::int64_t experts, std::int64_t per_token, double tokens) {
  if (per_token >= experts) return as_double(experts);
  if (tokens <= 1) return as_double(per_token);  // exactly, which the formula below misses by a rounding
  const double skipped_by_one = 1 - as_double(per_token) / as_double(experts);
  const double touched = as_double(experts) * (1 - std::pow(skipped_by_one, tokens));
  return std::clamp(touched, as_double(per_token), as_double(experts));
}

std::int64_t least_experts(const ExpertWork& work) {
  return std::max<std::int64_t>(0, std::min(work.per_token, work.total) - work.idle);
}

std::int64_t tokens_kept(const AttentionWork& attention, std::int64_t context) {
  if (attention.window > 0) return std::min(attention.window, context);
  // The running chunk; where one has just been filled, the whole of it.
  if (attention.chunk > 0 && context > 0) return (context - 1) % attention.chunk + 1;
  return context;
}

std::int64_t effective_context(const AttentionWork& attention, std::int64_t context) {
  if (attention.chunk > 0) return context % attention.chunk;
  const std::int64_t kept = tokens_kept(attention, context);
  return attention.top_k > 0 ? std::min(attention.top_k, kept) : kept;
}

double attention_pairs(const AttentionWork& attention, std::int64_t tokens) {
  if (attention.chunk == 0) {
    return causal_pairs(tokens, attention.window > 0 ? attention.window : attention.top_k);
  }
  const double whole = as_double(tokens / attention.chunk);
  return whole * causal_pairs(attention.chunk, 0) + causal_pairs(tokens % attention.chunk, 0);
}

double causal_pairs(std::int64_t tokens, std::int64_t window) {
  const double all = as_double(tokens);
  if (window <= 0 || window >= tokens) return all * (all + 1) / 2;
  const double reach = as_double(window);
  return reach * (reach + 1) / 2 + (all - reach) * reach;
}

Step cost_step(const std::vector<Op>& ops, const Workload& workload) {
  Step step{.workload = workload, .ops = &ops};
  step.costs.reserve(ops.size());
  for (const Op& op : ops) {
    step.costs.push_back(cost_of(op.work, workload).times(as_double(op.count())));
    step.total += step.costs.back();
  }
  return step;
}

Step under_even_routing(Step step) {
  for (Cost& cost : step.costs) cost.weight_bytes_least = cost.weight_bytes;
  step.total.weight_bytes_least = step.total.weight_bytes;
  return step;
}

}  // namespace memwall
