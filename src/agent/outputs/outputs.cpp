#include "agent/outputs/outputs.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "agent/host/matches.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/record.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_files_in_part = 1000;
constexpr std::size_t most_name_bytes_in_part = std::size_t{256} << 10U;
constexpr int max_output_depth = 100;

wire::PathKind find_kind(const Path& path) {
  const auto info = look_at(path);
  if (!info) {
    return wire::PathKind::missing;
  }
  const auto entry = look_at_entry(path);
  if (!entry || !S_ISLNK(entry->st_mode)) {
    return wire::PathKind::there;
  }
  return S_ISDIR(info->st_mode) ? wire::PathKind::folder_link : wire::PathKind::link;
}

// A file counts if it was modified after `since` and not after `until`.
struct WriteTimes {
  struct stat since {};
  std::optional<struct stat> until{};

  bool contain(const struct stat& file) const {
    return is_newer(file, since) && !(until && is_newer(file, *until));
  }
};

// The time of the last result of the launch's jobs in this folder; nullopt if any of them has not ended.
std::optional<struct stat> find_last_result(const JobsFolder& folder, const std::vector<std::string>& ids) {
  std::optional<struct stat> last;
  for (const std::string& id : ids) {
    const Path job = folder.jobs / id;
    if (!is_folder(job)) {
      continue;
    }
    const auto journal = look_at(job / journal_name);
    if (!journal || !read_own_history(job).has_ended()) {
      return std::nullopt;
    }
    if (!last || is_newer(*journal, *last)) {
      last = journal;
    }
  }
  return last;
}

WriteTimes find_write_times(const JobsFolder& folder, const wire::WrittenRequest& request) {
  WriteTimes times;
  const auto script = look_at(folder.jobs / request.first / spec_name);
  if (script && S_ISREG(script->st_mode)) {
    times.since = *script;
    times.until = find_last_result(folder, request.ids);
    return times;
  }
  times.since.st_mtim.tv_sec = request.began;
  if (request.ended) {
    times.until.emplace().st_mtim.tv_sec = *request.ended;
  }
  return times;
}

class WrittenSearch {
 public:
  WrittenSearch(const Path& project, const WriteTimes& times, Stream& stream)
      : project_(project), times_(times), stream_(stream) {}

  void visit(const std::string& name, const std::optional<struct stat>& info, int depth) {
    if (!info || stream_.is_closed()) {
      return;
    }
    if (S_ISREG(info->st_mode) && times_.contain(*info)) {
      add(name, *info);
    }
    if (!S_ISDIR(info->st_mode) || depth == max_output_depth) {
      return;
    }
    for (const std::string& entry : list_names(project_ / name)) {
      const std::string path = name + "/" + entry;
      visit(path, look_at_entry(project_ / path), depth + 1);
    }
  }
  void send() { stream_.send(std::exchange(part_, {})); }

 private:
  void add(const std::string& name, const struct stat& info) {
    if (name.size() > wire::max_path) {
      return;
    }
    part_.files.push_back({name, info.st_mtim.tv_sec, static_cast<std::uint64_t>(info.st_size)});
    bytes_ += name.size();
    if (part_.files.size() == most_files_in_part || bytes_ > most_name_bytes_in_part) {
      bytes_ = 0;
      send();
    }
  }

  const Path& project_;
  const WriteTimes& times_;
  Stream& stream_;
  wire::WrittenReply part_{};
  std::size_t bytes_ = 0;
};

}  // namespace

wire::PathsReply find_path_kinds(const Host& host, const wire::PathsRequest& request) {
  wire::PathsReply reply;
  for (const std::string& path : request.paths) {
    reply.kinds.push_back(find_kind(host.expand(path)));
  }
  return reply;
}

wire::MatchesReply find_matching_names(const Host& host, const wire::MatchesRequest& request) {
  wire::MatchesReply reply{find_matches(host.expand(request.folder), request.pattern, wire::max_matches + 1)};
  std::erase_if(reply.names, [](const std::string& name) {
    return name.find('\n') != std::string::npos || name.size() > wire::max_path;
  });
  return reply;
}

void answer_written(const Host& host, const wire::WrittenRequest& request, Stream& stream) {
  const JobsFolder folder = JobsFolder::of(host, request.place);
  const WriteTimes times = find_write_times(folder, request);
  WrittenSearch search(folder.project, times, stream);
  for (const std::string& output : request.outputs) {
    for (const std::string& name : find_matches(folder.project, output, wire::max_paths)) {
      search.visit(name, look_at(folder.project / name), 0);
    }
  }
  search.send();
}

}  // namespace remote::agent
