#include "agent/launch/mpi_orders.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job/job_files.hpp"
#include "agent/job/record.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::array<std::string_view, 3> mpi_daemons{"orted", "prted", "hydra_pmi_proxy"};

bool is_open_fifo(const Descriptor& file) {
  struct stat info {};
  return file && ::fstat(file.get(), &info) == 0 && S_ISFIFO(info.st_mode);
}

// Writes a line to a FIFO. Does nothing if no process reads it.
void write_to_reader(const Path& path, std::string line) {
  const Descriptor fifo(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (is_open_fifo(fifo)) {
    write_whole(fifo.get(), line += '\n');
  }
}

// Replaces bytes that are not UTF-8, which a message cannot contain.
std::string make_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const wire::Character character = wire::first_character(text);
    const bool is_invalid = character.code == 0xfffd && character.size == 1;
    result += is_invalid ? "\xef\xbf\xbd" : text.substr(0, character.size);
    text.remove_prefix(character.size);
  }
  return result;
}

// Parses "KIND.NUMBER". Returns the number, or "" if the name does not have this form.
std::string_view read_number_of(std::string_view name, std::string_view kind) {
  if (!name.starts_with(kind) || !name.substr(kind.size()).starts_with('.')) {
    return {};
  }
  const std::string_view number = name.substr(kind.size() + 1);
  return number.find_first_not_of("0123456789") == std::string_view::npos ? number : std::string_view();
}

// Removes entries of a folder, unless it is a link. Returns false on failure.
template <typename Condition>
bool remove_entries(const Path& path, const Condition& is_unwanted) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) {
    return false;
  }
  bool are_removed = true;
  for (const std::string& name : list_names("/proc/self/fd/" + std::to_string(folder.get()))) {
    if (is_unwanted(name) && ::unlinkat(folder.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
      are_removed = false;
    }
  }
  return are_removed;
}

}  // namespace

bool is_mpi_daemon(std::string_view name) {
  return std::ranges::find(mpi_daemons, name) != mpi_daemons.end();
}

std::optional<std::vector<std::string>> find_daemon_words(std::string_view line) {
  std::optional<std::vector<std::string>> words = split_shell_words(line);
  if (!words) {
    return std::nullopt;
  }
  for (auto word = words->begin(); word != words->end(); ++word) {
    // Assignments may precede the daemon: "PATH=/opt/x/bin:$PATH;export PATH;/opt/x/bin/orted".
    std::string name = word->substr(word->find_last_of(";/") + 1);
    if (is_mpi_daemon(name)) {
      *word = std::move(name);
      words->erase(words->begin(), word);
      return words;
    }
  }
  return std::nullopt;
}

Descriptor open_mpi_orders(const Path& job_folder) {
  const Path path = job_folder / "orders";
  ::mkfifo(path.c_str(), 0600);
  Descriptor fifo(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!is_open_fifo(fifo)) {
    throw std::runtime_error("cannot open " + path.string());
  }
  return fifo;
}

MpiOrders::MpiOrders(Path job_folder, std::map<std::string, std::string> servers)
    : folder_(std::move(job_folder)), servers_(std::move(servers)), fifo_(open_mpi_orders(folder_)) {}

void MpiOrders::look() {
  std::array<char, 4096> buffer{};
  [[maybe_unused]] const ssize_t count = ::read(fifo_.get(), buffer.data(), buffer.size());
  for (const std::string& name : list_names(folder_)) {
    for (const std::string_view kind : {"order", "until"}) {
      if (const std::string_view number = read_number_of(name, kind); !number.empty()) {
        read_order(kind, std::string(number));
      }
    }
  }
}

void MpiOrders::read_order(std::string_view kind, const std::string& number) {
  if (until_.contains(number) || std::ranges::find(waiting_, number, &Order::number) != waiting_.end()) {
    return;
  }
  const std::optional<std::string> content =
      read_job_file(folder_ / (std::string(kind) + "." + number), most_mpi_order_bytes + 1);
  if (!content) {
    return;
  }
  const std::string text = make_utf8(*content);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const auto server = servers_.find(text.substr(0, end));
  if (server == servers_.end()) {
    answer(kind, number, "it is not a server of this launch");
    return;
  }
  if (kind == "until") {
    until_[number] = server->second;
    return;
  }
  std::optional<std::vector<std::string>> words =
      find_daemon_words(replace_all(std::string_view(text).substr(end), "\n", " "));
  if (!words || text.size() > most_mpi_order_bytes) {
    answer(kind, number, "its command line is not understood");
    return;
  }
  waiting_.push_back({number, server->second, {std::move(*words)}});
}

void MpiOrders::answer(std::string_view kind, const std::string& number, const std::string& text) const {
  // The file was kept until now for a new supervisor, in case this one died.
  ::unlink((folder_ / (std::string(kind) + "." + number)).c_str());
  write_to_reader(folder_ / ("answer." + number), text);
}

void MpiOrders::send(const std::function<bool(const std::string&, const wire::MpiOrder&)>& send,
                     const std::map<std::string, std::string>& gone) {
  std::erase_if(waiting_, [&](const Order& order) {
    if (send(order.server, order.order)) {
      sent_[order.server] = order.order;
      answer("order", order.number, "ok");
      return true;
    }
    const auto reason = gone.find(order.server);
    if (reason == gone.end()) {
      return false;
    }
    answer("order", order.number, reason->second);
    return true;
  });
}

const wire::MpiOrder* MpiOrders::find_sent(const std::string& server) const {
  const auto found = sent_.find(server);
  return found == sent_.end() ? nullptr : &found->second;
}

void MpiOrders::tell_ends(const std::set<std::string>& ended) {
  std::erase_if(until_, [&](const auto& waiter) {
    if (!ended.contains(waiter.second)) {
      return false;
    }
    answer("until", waiter.first, "ended");
    return true;
  });
}

void MpiOrders::forget() {
  waiting_.clear();
  until_.clear();
  sent_.clear();
}

void keep_mpi_order(const Path& job_folder, const wire::MpiOrder& order) {
  const auto has_newline = [](const std::string& word) { return word.find('\n') != std::string::npos; };
  if (has_entry(job_folder / "order") || std::ranges::any_of(order.words, has_newline) ||
      (!order.words.empty() && !is_mpi_daemon(order.words.front()))) {
    return;
  }
  std::string text;
  for (const std::string& word : order.words) {
    text += word + '\n';
  }
  if (put_file(job_folder / "order", text)) {
    write_to_reader(job_folder / "orders", "");
  }
}

bool forget_mpi_attempt(const Path& job_folder) {
  constexpr std::array<std::string_view, 5> prefixes{"order.", "until.", "answer.", "open.rank.",
                                                     "raised.rank."};
  return remove_entries(job_folder, [&](const std::string& name) {
    return name == "order" ||
           std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
  });
}

std::optional<std::vector<std::string>> split_shell_words(std::string_view line) {
  constexpr char none = '\0';
  std::vector<std::string> words;
  std::string word;
  bool has_word = false;
  char quote = none;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char character = line[at];
    const bool may_escape = quote != '\'' && character == '\\';
    if (may_escape && at + 1 == line.size()) {
      return std::nullopt;
    }
    if (may_escape) {
      const char next = line[++at];
      if (quote != none && next != '"' && next != '\\') {
        word += '\\';
      }
      word += next;
      has_word = true;
    } else if (quote != none) {
      if (character == quote) {
        quote = none;
      } else {
        word += character;
      }
    } else if (character == '"' || character == '\'') {
      quote = character;
      has_word = true;
    } else if (std::string_view(" \t\r\n").find(character) == std::string_view::npos) {
      word += character;
      has_word = true;
    } else if (has_word) {
      words.push_back(std::exchange(word, ""));
      has_word = false;
    }
  }
  if (quote != none) {
    return std::nullopt;
  }
  if (has_word) {
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace remote::agent
