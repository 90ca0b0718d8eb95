#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/backend.hpp"
#include "jobs/job.hpp"
#include "servers/action.hpp"

// What the actions on jobs share.

namespace remote::jobs {

// What an action's script begins with: $project and $jobs, lib.sh, of the backends these parts, and the
// action's functions.
servers::Script job_script(const RemoteFolder& folder, std::string_view file,
                           const std::vector<Backend>& known = {},
                           std::initializer_list<std::string_view> parts = {});

// Adds FUNCTION ID for each of the jobs.
void call_each(servers::Script& script, std::string_view function, const std::vector<JobId>& ids);

// A text as one word of a line: its odd bytes as %XX; "-" when it is empty.
std::string percent_encode(std::string_view text);

// The next word of a line, which must be the id of a job.
JobId id_word(servers::AnswerLine& line);

// What the server says of this job; nullptr when it does not name it.
template <typename Reply>
const Reply* reply_about(const JobId& id, const std::vector<Reply>& replies) {
  for (const Reply& reply : replies) {
    if (reply.id == id) {
      return &reply;
    }
  }
  return nullptr;
}

}  // namespace remote::jobs
