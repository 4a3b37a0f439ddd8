// Launches captured once and replayed as a whole.
#pragma once

#include <functional>

#include "cuda/module/stream.h"

namespace memwall::cuda {

// What is launched on the stream while this lives is recorded instead of run.
class Capture {
 public:
  // Relaxed: the first use of a kernel loads it, which the stricter modes refuse within a capture.
  explicit Capture(const Stream& stream) : stream_(stream.get()) {
    MEMWALL_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // Where the launches threw, which may have spoilt the capture: the stream is usable again, what was
  // recorded is dropped, and so is CUDA's record of the error.
  ~Capture() {
    if (stream_ == nullptr) return;
    Handle<cudaGraph_t, cudaGraphDestroy> dropped;
    (void)cudaStreamEndCapture(stream_, dropped.out());
    (void)cudaGetLastError();
  }

  Handle<cudaGraph_t, cudaGraphDestroy> end() {
    Handle<cudaGraph_t, cudaGraphDestroy> graph;
    cudaStream_t stream = std::exchange(stream_, nullptr);  // ended, whether or not this throws
    MEMWALL_CHECK(cudaStreamEndCapture(stream, graph.out()));
    return graph;
  }

 private:
  cudaStream_t stream_;
};

class Graph {
 public:
  // Of what `launches` launches on the stream; already on the device.
  Graph(const Stream& stream, const std::function<void()>& launches) {
    Capture capture(stream);
    launches();
    const auto graph = capture.end();
    MEMWALL_CHECK(cudaGraphGetNodes(graph.get(), nullptr, &nodes_));
    MEMWALL_CHECK(cudaGraphInstantiateWithFlags(exec_.out(), graph.get(), 0));
    MEMWALL_CHECK(cudaGraphUpload(exec_.get(), stream.get()));
  }

  std::size_t nodes() const { return nodes_; }
  void launch(const Stream& stream) { MEMWALL_CHECK(cudaGraphLaunch(exec_.get(), stream.get())); }

 private:
  Handle<cudaGraphExec_t, cudaGraphExecDestroy> exec_;
  std::size_t nodes_ = 0;
};

}  // namespace memwall::cuda
