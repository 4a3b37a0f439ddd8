// Every launch that a GPU is asked for. A launch names its kernel and holds its parameters and geometry;
// dispatch() of its family's .cuh finds the kernel.
#pragma once

#include <variant>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/fill.h"
#include "kernels/cuda/gather.h"
#include "kernels/cuda/indexer.h"
#include "kernels/cuda/latent.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/router.h"
#include "kernels/cuda/stream.h"

namespace memwall::cuda {

using Launch =
    std::variant<FillLaunch, StreamLaunch, LinearLaunch, AttentionLaunch, LatentLaunch, IndexerLaunch,
                 ElementwiseLaunch, RouterLaunch, GatherLaunch, RecurrentLaunch, QuantizeLaunch>;

}  // namespace memwall::cuda
