#pragma once

#include <string>

#include <remote/job.hpp>

#include "servers/action.hpp"

// The shared file by which the ranks of a launch find each other (torch's init_method="file://…"): a file
// `store` in a folder ".remote-init-ID" of the launch's own, within a folder that all servers have in common.
// The last job of the launch that ends removes it: src/server/init_file.sh.

namespace remote::servers {

struct InitFileAnswer {
  std::string folder{};   // the launch's folder, as a path on that server
  std::string failure{};  // why it cannot be used there; foreign text; "": it can

  void take(AnswerLine& line);
  void check() const;
};

// Makes the launch's folder within `folder` (as remote_path_word() takes it), on the first server. `make`:
// makes `folder`, too, where it is not there.
Action<InitFileAnswer> make_init_file_action(const std::string& folder, const JobId& launch, bool make);

// Looks on another server whether that folder is there, and may be written and locked. `maker` is the first
// server's name. To be asked when the first one has answered.
Action<InitFileAnswer> see_init_file_action(const std::string& folder, const JobId& launch,
                                            const std::string& maker);

// Removes the launch's folder, when nothing of the launch was started. The answer is empty.
struct NoAnswer {
  static void take(AnswerLine& line) { line.refuse_kind(); }
};
Action<NoAnswer> drop_init_file_action(const std::string& folder, const JobId& launch);

// What a job's file `init_file` says: how many jobs the launch has, and the launch's folder.
std::string init_file_text(std::size_t jobs, const std::string& folder);

// What torch is given: "file:///mnt/common/.remote-init-ID/store".
std::string init_file_url(const std::string& folder);

}  // namespace remote::servers
