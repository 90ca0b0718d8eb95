#include "agent/stacks/looker.hpp"

#include <chrono>
#include <thread>

#include <unistd.h>

#include "agent/job/job_files.hpp"
#include "base/format.hpp"

namespace remote::agent {

Looker::Looker(const Host& host, const JobsFolder& folder, const std::vector<std::string>& ids) {
  const auto self = read_process(host, ::getpid());
  if (!self) {
    return;
  }
  const std::string line = text::format("{} {}\n", self->id.pid, self->id.start);
  int tries = 0;
  for (const std::string& id : ids) {
    const Path file = folder.jobs / id / "looker";
    while (is_folder(folder.jobs / id)) {
      if (create_file(file, line)) {
        files_.push_back(file);
        break;
      }
      const auto other = parse_process_id(read_job_words(file));
      if (!other || *other == self->id || tries >= 200 || host.is_cancelled()) {
        break;
      }
      if (is_alive(host, *other)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ++tries;
      } else {
        ::unlink(file.c_str());
      }
    }
  }
}

Looker::~Looker() {
  for (const Path& file : files_) {
    ::unlink(file.c_str());
  }
}

}  // namespace remote::agent
