#include "report/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>

#include "report/page/resources.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

json record_named(const std::string& name) {
  return {{"schema", 1}, {"implementation", name}, {"problem", "b1 sq8 h1 d64 fp32"}};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

/// The text of the element that holds the records.
std::string embedded(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"records\">";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(Page, HoldsTheRecordsOneALine) {
  const std::string page = render_page({record_named("flash"), record_named("standard")}, {});
  EXPECT_EQ(json::parse(embedded(page)),
            json::array({record_named("flash"), record_named("standard")}));
  EXPECT_EQ(count(embedded(page), "\n"), 3u);
}

TEST(Page, ShowsIdenticalRecordsOnce) {
  const json a = record_named("a"), b = record_named("b");
  EXPECT_EQ(json::parse(embedded(render_page({a, b, a, b, b}, {}))), json::array({a, b}));
}

TEST(Page, LetsNoTextOfARecordOut) {
  const std::size_t scripts = count(render_page({record_named("plain")}, {}), "<script");
  for (const std::string hostile :
       {"</script><script>alert(1)</script>", "</SCRIPT >", "<!--<script>", "-->", "]]>", "&lt;",
        "\u2028\u2029", "{{chart.js}}", "\\u003c", "\"'`${1}", "\x7f\x01\n"}) {
    const json record{{"schema", 1}, {"implementation", hostile}, {hostile, {hostile}}};
    const std::string page = render_page({record}, {});
    EXPECT_EQ(json::parse(embedded(page)), json::array({record})) << hostile;
    EXPECT_EQ(embedded(page).find_first_of("<>&"), std::string::npos) << hostile;
    EXPECT_EQ(count(page, "<script"), scripts) << hostile;
  }
}

TEST(Page, RepairsBrokenText) {
  const std::string page = render_page({record_named("\xff\xfe")}, {});
  EXPECT_EQ(json::parse(embedded(page))[0]["implementation"], "\uFFFD\uFFFD");
}

TEST(Page, EscapesTheTitle) {
  const std::string page = render_page({}, {.title = "a < b & </title><script>{{records}}"});
  EXPECT_EQ(count(page, "a &lt; b &amp; &lt;/title&gt;&lt;script&gt;{{records}}"), 2u);
}

TEST(Page, NeedsNothingElse) {
  const std::string page = render_page({record_named("flash")}, {});
  EXPECT_TRUE(contains(page, "default-src 'none'"));
  // An address may be named, but nothing may load it.
  const std::regex loads(R"((src|href|action)\s*=\s*["']?(https?:)?//|url\(|@import|\bfetch\()");
  std::smatch found;
  EXPECT_FALSE(std::regex_search(page, found, loads)) << found.str();
  for (const char* call : {"XMLHttpRequest", "WebSocket", "sendBeacon", "innerHTML", "eval("}) {
    EXPECT_FALSE(contains(page, call)) << call;
  }
  EXPECT_EQ(count(page, "<link"), 1u) << "the empty icon";
}

TEST(Page, IsWhole) {
  const std::string page = render_page({record_named("flash")}, {});
  EXPECT_EQ(count(page, "<script"), count(page, "</script>"));
  EXPECT_FALSE(contains(page, "{{")) << page.substr(page.find("{{"), 40);
  EXPECT_TRUE(contains(page, "Chart.js v3."));
  EXPECT_TRUE(contains(page, "Permission is hereby granted, free of charge"));
  EXPECT_TRUE(contains(page, "<noscript>"));
  EXPECT_THROW(page_resource("no-such-file"), std::logic_error);
}

TEST(Page, DependsOnNothingButItsArguments) {
  const std::vector<json> records{record_named("flash"), record_named("standard")};
  EXPECT_EQ(render_page(records, {}), render_page(records, {}));
}

}  // namespace
}  // namespace strobe::lab
