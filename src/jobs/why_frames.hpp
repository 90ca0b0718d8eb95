#pragma once

#include <string>
#include <vector>

#include <remote/why.hpp>

// What a Python stack shows of what a rank does.

namespace remote::jobs {

struct Place {
  // collective, meeting, peer, data or lock, where the stack shows that; else waiting
  RankDoing doing = RankDoing::waiting;
  std::string function{};  // as RankLook has them
  std::string file{};
  int line = 0;
  bool in_backward = false;  // of autograd, in whose own threads the ranks of DDP meet
  friend bool operator==(const Place&, const Place&) = default;
};

// Of the main thread's frames, the innermost call first: "forward (/a/train.py:12)".
Place place_of(const std::vector<std::string>& frames);

}  // namespace remote::jobs
