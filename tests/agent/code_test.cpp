#include "agent/facts/code.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/fake_host.hpp"
#include "wire/json.hpp"

namespace remote::agent {
namespace {

class AgentCode : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text, std::int64_t seconds) {
    fake.put(project / name, text);
    set_time(name, seconds);
  }
  void set_time(const std::string& name, std::int64_t seconds) {
    const timespec times[] = {{seconds, 5}, {seconds, 5}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (project / name).c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  wire::CodeFacts compare(std::string_view listed) const { return compare_files(project, listed); }

  test::FakeHost fake;
  fs::path project = fake.folder() / "my project";
};

using Stamp = wire::ChangedFile::Stamp;

TEST_F(AgentCode, NamesTheFilesThatDiffer) {
  put("same.py", "1234", 1000);
  put("a dir/another name.py", "12", 1000);
  put("size.py", "12345", 1000);
  put("time.py", "1234", 1001);
  put("old.py", "", -5);
  const wire::CodeFacts facts = compare(
      "4 1000 same.py\n2 1000 a dir/another name.py\n4 1000 size.py\n4 1000 time.py\n0 -5 old.py\n7 8 "
      "gone.py\n"
      "0 0 same.py/below\n");
  EXPECT_EQ(facts.count, 4U);
  ASSERT_EQ(facts.files.size(), 4U);
  EXPECT_EQ(facts.files[0].name, "size.py");
  EXPECT_EQ(facts.files[0].stamp, (Stamp{5, 1000}));
  EXPECT_EQ(facts.files[1].name, "time.py");
  EXPECT_EQ(facts.files[1].stamp, (Stamp{4, 1001}));
  EXPECT_EQ(facts.files[2].name, "gone.py");
  EXPECT_FALSE(facts.files[2].stamp);
  EXPECT_EQ(facts.files[3].name, "same.py/below");
}

TEST_F(AgentCode, DoesNotFollowLinks) {
  put("target", "1234", 1000);
  fs::create_symlink("target", project / "link");
  set_time("link", 2000);
  EXPECT_EQ(compare("6 2000 link\n").count, 0U);
  EXPECT_EQ(compare("4 1000 link\n").files.at(0).stamp, (Stamp{6, 2000}));
}

TEST_F(AgentCode, NamesMayBeOdd) {
  for (const char* name : {" x", "-rf", "a  b ", "$(x)", "\xff\xfe", "tab\t", "'", "back\\slash"}) {
    put(name, "1", 7);
    EXPECT_EQ(compare(fmt::format("1 7 {}\n", name)).count, 0U) << name;
    EXPECT_EQ(compare(fmt::format("1 8 {}\n", name)).files.at(0).name, name);
  }
}

TEST_F(AgentCode, TheListMayBeEmptyOrTheProjectMissing) {
  EXPECT_EQ(compare("").count, 0U);
  EXPECT_EQ(compare("\n").count, 0U);
  EXPECT_EQ(compare("1 2 \n1\nx y z\n").count, 0U);
  const wire::CodeFacts facts = compare("1 2 a\n3 4 b");
  EXPECT_EQ(facts.count, 2U);
  EXPECT_EQ(facts.files.at(1).name, "b");
  EXPECT_FALSE(facts.files.at(1).stamp);
}

TEST_F(AgentCode, TheAnswerIsLimitedAndAllAreCounted) {
  std::string listed;
  for (int i = 0; i < 2500; ++i) {
    listed += fmt::format("1 2 {}\n", i);
  }
  EXPECT_EQ(compare(listed).count, 2500U);
  EXPECT_EQ(compare(listed).files.size(), wire::CodeFacts::most_files);
  listed.clear();
  for (int i = 0; i < 1000; ++i) {
    listed += fmt::format("1 2 {:04}{}\n", i, std::string(996, 'x'));
  }
  EXPECT_EQ(compare(listed).count, 1000U);
  EXPECT_EQ(compare(listed).files.size(), 524U);
  const wire::CodeFacts facts = compare("1 2 " + std::string(5000, 'x') + "\n1 2 y\n");
  EXPECT_EQ(facts.count, 2U);
  ASSERT_EQ(facts.files.size(), 1U);
  EXPECT_EQ(facts.files.front().name, "y");
  EXPECT_NO_THROW(wire::from_json<wire::CodeFacts>(wire::to_json(facts)));
}

}  // namespace
}  // namespace remote::agent
