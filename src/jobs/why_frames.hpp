#pragma once

#include <string>
#include <vector>

#include <remote/why.hpp>

// What a rank is doing according to its Python stack.

namespace remote::jobs {

struct Place {
  // collective, meeting, peer, data or lock, if the stack shows it; otherwise waiting
  RankDoing doing = RankDoing::waiting;
  std::string function{};  // see RankLook
  std::string file{};
  int line = 0;
  bool in_backward = false;  // in autograd, whose own threads run the collectives of DDP
  friend bool operator==(const Place&, const Place&) = default;
};

// `frames` are those of the main thread, the innermost call first: "forward (/a/train.py:12)".
Place place_of(const std::vector<std::string>& frames);

}  // namespace remote::jobs
