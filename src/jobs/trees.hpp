#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>

#include "servers/action.hpp"

// The tree that a frozen launch runs in on a server (docs/frozen.md): what was sent, under its digest.

namespace remote::jobs {

struct TreeAnswer {
  bool ready = false;
  bool unknown = false;  // the tree is gone, and so is the list of its files, or the project's folder
  std::vector<std::string> differing;  // files that are not what was sent; the first of them
  int more = 0;                        // how many others there are
  std::string failure;                 // why it could not be made; foreign text

  void take(servers::AnswerLine& line);
  void check() const;
};

// Makes the tree, or makes what is there whole again. `list` is ProjectState::text(), of which `digest` is
// the SHA-256; "": the list that the server has kept. `activate` enters the environment, for its Python.
servers::Action<TreeAnswer> tree_action(const RemoteFolder& folder, const std::string& digest,
                                        const std::string& list, const std::string& activate);

}  // namespace remote::jobs
