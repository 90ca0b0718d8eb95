#include "agent/notify/compose.hpp"

#include <cstdint>
#include <vector>

#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/json_text.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr int longest_line = 500;  // characters

struct Message {
  std::string launch;
  std::string name;
  std::string project;
  std::string state;
  std::string text;
  std::string command;
  std::vector<std::string> servers;
  int ranks = 0;
  std::int64_t began = 0;
  std::int64_t ended = 0;
  std::vector<std::string> lines;

  static constexpr auto fields() {
    using M = Message;
    return wire::field_list(
        wire::field("launch", &M::launch), wire::field("name", &M::name), wire::field("project", &M::project),
        wire::field("state", &M::state), wire::field("text", &M::text), wire::field("command", &M::command),
        wire::field("servers", &M::servers), wire::field("ranks", &M::ranks), wire::field("began", &M::began),
        wire::field("ended", &M::ended), wire::field("lines", &M::lines));
  }
};

struct SlackMessage {
  std::string text;

  static constexpr auto fields() { return wire::field_list(wire::field("text", &SlackMessage::text)); }
};

std::string compose_text(const wire::NotifySpec& spec, const Notification& notification) {
  return (spec.name.empty() ? "launch " + spec.launch : spec.name) + " " + notification.state +
         (notification.why.empty() ? "" : ": " + notification.why);
}

// Inserts blanks after ',' and ':', as documented in docs/notify.md, because a command may search the text
// for them.
std::string add_blanks(std::string_view json) {
  std::string spaced;
  bool is_quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    spaced += json[i];
    if (is_quoted && json[i] == '\\') {
      spaced += json[++i];
    } else if (json[i] == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted && (json[i] == ',' || json[i] == ':')) {
      spaced += ' ';
    }
  }
  return spaced;
}

std::string escape_for_slack(std::string_view text) {
  return replace_all(replace_all(replace_all(text, "&", "&amp;"), "<", "&lt;"), ">", "&gt;");
}

// Headers may only contain ASCII.
std::string compose_title(std::string_view text) {
  std::string title;
  while (!text.empty()) {
    const wire::Character character = wire::first_character(text);
    const bool is_printable = character.code >= ' ' && character.code <= '~';
    title += is_printable ? static_cast<char>(character.code) : '?';
    text.remove_prefix(character.size);
  }
  return title;
}

}  // namespace

std::string compose_json(const wire::NotifySpec& spec, const Notification& notification,
                         std::chrono::seconds now) {
  const Message message{.launch = spec.launch,
                        .name = spec.name,
                        .project = spec.project,
                        .state = notification.state,
                        .text = compose_text(spec, notification),
                        .command = spec.ranks_command,
                        .servers = spec.servers,
                        .ranks = spec.ranks,
                        .began = spec.began,
                        .ended = now.count(),
                        .lines = split(notification.lines, '\n')};
  return add_blanks(wire::to_json_text(message));
}

Post compose_post(const wire::NotifySpec& spec, const Notification& notification, std::chrono::seconds now) {
  const std::string text = compose_text(spec, notification);
  const std::string& lines = notification.lines;
  Post post{.url = spec.url, .headers = {{"User-Agent", "remote"}}, .body = {}};
  if (spec.shape == wire::NotifyShape::ntfy) {
    const bool is_well = notification.state == "succeeded" || notification.state == "test";
    post.headers["Title"] = compose_title(spec.project + ": " + text);
    post.headers["Tags"] = is_well ? "white_check_mark" : "x";
    post.headers["Priority"] = is_well ? "default" : "high";
    post.body = !lines.empty() ? lines : !spec.ranks_command.empty() ? spec.ranks_command : text;
    return post;
  }
  post.headers["Content-Type"] = "application/json";
  if (spec.shape == wire::NotifyShape::json) {
    post.body = compose_json(spec, notification, now);
    return post;
  }
  SlackMessage message{"*" + escape_for_slack(spec.project) + "*: " + escape_for_slack(text)};
  if (!lines.empty()) {
    message.text += "\n```\n" + replace_all(escape_for_slack(lines), "```", "'''") + "\n```";
  }
  post.body = add_blanks(wire::to_json_text(message));
  return post;
}

std::string compose_line(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const wire::Character character = wire::first_character(text);
    const std::string_view bytes = text.substr(0, character.size);
    const bool is_invalid = character.code == 0xfffd && character.size == 1;
    clean += is_invalid ? "\xef\xbf\xbd" : wire::is_line(bytes) ? bytes : " ";
    text.remove_prefix(character.size);
  }
  clean = join(split_words(clean), " ");
  std::size_t size = 0;
  for (int i = 0; i < longest_line && size < clean.size(); ++i) {
    size += wire::first_character(std::string_view(clean).substr(size)).size;
  }
  clean.resize(size);
  return clean;
}

}  // namespace remote::agent
