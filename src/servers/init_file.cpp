#include "servers/init_file.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"

namespace remote::servers {
namespace {

Action<InitFileAnswer> check_action(const char* what, const std::string& folder) {
  Action<InitFileAnswer> action;
  action.what = what;
  action.script.set_path("folder", folder).add("actions/init_check.sh");
  action.timeout = std::chrono::seconds(30);
  return action;
}

// torch takes the text between "file://" and the first of these for the path, and decodes nothing.
bool fits_into_url(std::string_view path) {
  return path.find_first_of("?#;") == std::string_view::npos &&
         std::ranges::none_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

void InitFileAnswer::take(AnswerLine& line) {
  if (line.kind() != "init" || !folder.empty() || !failure.empty()) {
    line.refuse_kind();
  }
  const std::string_view how = line.word();
  if (how == "fail") {
    failure = visible_line(line.rest(), 500);
    if (failure.empty()) {
      line.refuse("a reason is missing");
    }
    return;
  }
  if (how != "at") {
    line.refuse("an unknown word");
  }
  folder = std::string(line.rest());
  if (!folder.starts_with('/') || folder.find("/.remote-init-") == std::string::npos) {
    line.refuse("a path is wrong");
  }
  if (!fits_into_url(folder)) {
    failure =
        fmt::format("{} has a character that torch does not take in file://…", visible_line(folder, 300));
  }
}

void InitFileAnswer::check() const {
  if (folder.empty() && failure.empty()) {
    throw Error("the server's answer is not understood", "nothing about the shared file in it")
        .mended_by(Remedy::tell_more);
  }
}

Action<InitFileAnswer> make_init_file_action(const std::string& folder, const JobId& launch, bool make) {
  Action<InitFileAnswer> action = check_action("shared file of a launch", folder);
  action.script.call("init_make", {launch.text(), make ? "1" : "0"}).call("init_end");
  return action;
}

Action<InitFileAnswer> see_init_file_action(const std::string& folder, const JobId& launch,
                                            const std::string& maker) {
  Action<InitFileAnswer> action = check_action("look at the shared file", folder);
  action.script.call("init_see", {launch.text(), maker}).call("init_end");
  return action;
}

Action<NoAnswer> drop_init_file_action(const std::string& folder, const JobId& launch) {
  Action<NoAnswer> action;
  action.what = "removal of the shared file";
  action.script.set_path("folder", folder).add("actions/init_check.sh");
  action.script.call("init_drop", {launch.text()}).call("init_end");
  action.timeout = std::chrono::seconds(10);
  return action;
}

std::string init_file_text(std::size_t jobs, const std::string& folder) {
  return fmt::format("{}\n{}", jobs, folder);
}

std::string init_file_url(const std::string& folder) {
  return "file://" + folder + "/store";
}

}  // namespace remote::servers
