// A child process of this program, and messages between it and its parent.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace memwall {

// One end of a connection between two processes. Messages arrive whole and in order.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Nothing is sent where the other end is closed: who receives next learns of it.
  void send(const nlohmann::json& message);

  enum class Heard { message, silence, closed };
  // Waits so long for a message to begin; below 0: for ever. A message that breaks off is a closed end.
  Heard receive(nlohmann::json& message, int milliseconds);

 private:
  bool read_whole(void* to, std::size_t bytes);

  int descriptor_;
};

class Child {
 public:
  // Forks: `work` runs in a process of its own, which ends with it, is no member of the terminal's group (a
  // Ctrl-C is the parent's to pass on) and dies with the parent. The parent has one thread, and no CUDA,
  // which does not survive a fork. Throws RunError where no process can be had.
  explicit Child(const std::function<void(Channel&)>& work);
  ~Child();  // kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Channel& channel() { return channel_; }
  void ask_to_end();  // SIGTERM
  // Waits for its end, for some seconds, then kills it; how it ended, in words: "it ended by signal 11
  // (Segmentation fault)". A driver may hold a process that nothing ends: then the words say so.
  std::string end(bool at_once = false);

 private:
  Child(std::array<int, 2> ends, const std::function<void(Channel&)>& work);

  pid_t process_ = -1;
  Channel channel_;
  std::string ended_;
};

}  // namespace memwall
