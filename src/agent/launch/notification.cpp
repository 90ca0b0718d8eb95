#include "agent/launch/notification.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "agent/host/start.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/output_end.hpp"
#include "agent/job/record.hpp"
#include "agent/notify/notify.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/json_text.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_notified_lines = 10;
constexpr std::size_t most_line_bytes = 2000;
constexpr std::size_t most_clean_bytes = 4096;   // the limit of wire::LastLines
constexpr std::chrono::hours sending_limit{2};   // the process ends after an hour
constexpr std::chrono::hours start_patience{1};  // if no process can be started
constexpr unsigned start_pause_s = 10;

constexpr std::array<std::string_view, 6> end_states{"succeeded", "failed", "killed",
                                                     "lost",      "hung",   "unknown"};

std::string format_span(int seconds) {
  return seconds >= 120 ? text::format("{} min", seconds / 60) : text::format("{} s", seconds);
}

std::string format_ending(const wire::Ending& ending) {
  const std::string_view kind = wire::enum_names<wire::EndKind>[static_cast<std::size_t>(ending.kind)];
  return text::format("{} {}", kind, ending.code);
}

std::string describe_rank(int rank, const std::string& server) {
  return text::format("rank {} on {}", rank, server);
}

std::string describe_reason(const rules::LaunchVerdict& verdict) {
  switch (verdict.end) {
    case rules::LaunchEnd::hung:
      return text::format("no rank wrote or computed for {}; its ranks were ended",
                          format_span(verdict.seconds));
    case rules::LaunchEnd::lost:
      return verdict.is_cut_off ? text::format("server {} was cut off from all others", verdict.server)
                                : text::format("no report from server {}", verdict.server);
    case rules::LaunchEnd::killed:
      return verdict.rank ? describe_rank(*verdict.rank, verdict.server) : "";
    case rules::LaunchEnd::failed:
      return verdict.ending ? text::format("{} ({})", describe_rank(*verdict.rank, verdict.server),
                                           format_ending(*verdict.ending))
                            : text::format("rank {}", verdict.rank.value_or(0));
    case rules::LaunchEnd::unknown:
      return verdict.server.empty() ? "nothing was heard of " + join(verdict.unheard, ", ")
                                    : text::format("no report from server {} at the end", verdict.server);
    case rules::LaunchEnd::succeeded:
      break;
  }
  return "";
}

// Appends the first character of the text, or '?' if a terminal would interpret it. Returns its size.
std::size_t append_clean(std::string& clean, std::string_view text) {
  const wire::Character character = wire::first_character(text);
  const bool is_invalid = character.code == 0xfffd && character.size == 1;
  if (is_invalid) {
    clean += "\xef\xbf\xbd";
  } else if (character.code == '\n' || wire::is_line(text.substr(0, character.size))) {
    clean += text.substr(0, character.size);
  } else {
    clean += '?';
  }
  return character.size;
}

// Drops the beginning of a text, at a character boundary.
void shorten_clean(std::string& text) {
  if (text.size() > most_clean_bytes) {
    std::size_t begin = text.size() - most_clean_bytes;
    while ((static_cast<unsigned char>(text[begin]) & 0xc0U) == 0x80) {
      ++begin;
    }
    text.erase(0, begin);
  }
}

}  // namespace

Notification describe_end(const rules::LaunchVerdict& verdict) {
  return {.state = std::string(end_states.at(static_cast<std::size_t>(verdict.end))),
          .why = describe_reason(verdict)};
}

Notification describe_hang(const wire::Hang& hang, bool restarts) {
  return {.state = "hung",
          .why = text::format("no rank wrote or computed for {}; {}", format_span(hang.seconds),
                              restarts ? "its ranks start again" : "it was left as it is")};
}

std::string read_notification_lines(const Path& job_folder, const std::vector<std::string>& files) {
  for (const std::string& name : files) {
    std::string text = read_end_of_file(job_folder / name, most_line_bytes).value_or("");
    text = find_last_attempt(text);
    std::ranges::replace(text, '\r', '\n');
    std::ranges::replace(text, '\t', ' ');
    std::vector<std::string> lines = split(clean_notification_lines(text), '\n');
    std::erase_if(lines, [](const std::string& line) { return trim(line).empty(); });
    lines.erase(lines.begin(),
                lines.end() - static_cast<std::ptrdiff_t>(std::min(lines.size(), most_notified_lines)));
    if (!lines.empty()) {
      return join(lines, "\n");
    }
  }
  return "";
}

std::string clean_notification_lines(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    text.remove_prefix(append_clean(clean, text));
  }
  shorten_clean(clean);
  return clean;
}

Notifier::Notifier(const Host& host, Path program, Path job_folder, std::string activate)
    : host_(host),
      program_(std::move(program)),
      folder_(std::move(job_folder)),
      activate_(std::move(activate)) {}

std::vector<std::string> Notifier::list_words(const std::string& about) const {
  return {host_.system("/proc/self/exe"), "notify", about, folder_, program_};
}

Descriptor Notifier::hold_task(const Notification& notification) const {
  return hold_text(wire::to_json_text(NotifyTask{notification, activate_}));
}

void Notifier::start_about_hang(const Notification& notification) {
  if (!has_entry(folder_ / "notify")) {
    return;
  }
  if (const Descriptor task = hold_task(notification)) {
    start_apart(
        host_, {.argv = list_words("hang"), .folder = folder_.parent_path(), .input_descriptor = task.get()});
  }
}

void Notifier::send_about_end(const Notification& notification) {
  if (!has_entry(folder_ / "notify") || has_entry(folder_ / "notify.result")) {
    return;
  }
  const Descriptor task = hold_task(notification);
  for (const auto until = read_boot_clock() + start_patience;;) {
    try {
      run(host_, {.argv = list_words("end"),
                  .folder = folder_.parent_path(),
                  .limit = sending_limit,
                  .max_output = 0,
                  .input = task.get()});
      break;
    } catch (const CannotStart&) {
      if (read_boot_clock() >= until) {
        give_up("not sent: no process could be started");
        return;
      }
    }
    ::sleep(start_pause_s);
  }
  if (!has_entry(folder_ / "notify.result")) {
    give_up(has_entry(folder_ / "notify.mark") ? "not known whether it arrived: its program died meanwhile"
                                               : "not sent: its program failed");
  }
}

void Notifier::give_up(const std::string& result) {
  if (has_entry(folder_ / "notify") && put_file(folder_ / "notify.result", result + "\n")) {
    ::unlink((folder_ / "notify").c_str());  // it contains a secret
  }
}

}  // namespace remote::agent
